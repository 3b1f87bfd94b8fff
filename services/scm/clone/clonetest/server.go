// Package clonetest is a local Git host for tests: smart HTTP, fetch only, repositories in memory.
package clonetest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Server is a running host.
type Server struct {
	// URL is its base URL; the repository "acme/web" is at URL/acme/web.git.
	URL string
	// Username and Password are required from clients if set.
	Username, Password string
	// Capabilities are advertised besides Git's basic ones.
	Capabilities []capability.Capability
	// Before may handle a request itself; it then returns true.
	Before func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	repos    map[string]*repository
	requests []string
	uploads  []*packp.UploadRequest
}

type repository struct {
	objects *memory.Storage
	refs    map[string]plumbing.Hash
	head    string
}

// New runs a host until the test ends. It has the capabilities of public hosts.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		repos:        map[string]*repository{},
		Capabilities: []capability.Capability{capability.Shallow, capability.OFSDelta, capability.Sideband64k, capability.NoProgress, capability.Filter},
	}
	running := httptest.NewServer(s)
	t.Cleanup(func() {
		running.CloseClientConnections()
		running.Close()
	})
	s.URL = running.URL
	return s
}

// Commit adds a commit to a repository and points a ref ("refs/heads/main") to it. Its parent is the ref's previous
// commit. The first ref is the default branch. A path that ends in @ is a symbolic link to its content. It returns the
// commit's hash.
func (s *Server) Commit(t testing.TB, name, ref string, files map[string]string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[name]
	if r == nil {
		r = &repository{objects: memory.NewStorage(), refs: map[string]plumbing.Hash{}, head: ref}
		s.repos[name] = r
	}
	commit := &object.Commit{
		Author:    object.Signature{Name: "Maya Ortiz", Email: "maya@acme.test", When: time.Unix(1767225600, 0).UTC()},
		Committer: object.Signature{Name: "Maya Ortiz", Email: "maya@acme.test", When: time.Unix(1767225600, 0).UTC()},
		Message:   "Change", TreeHash: r.tree(t, files),
	}
	if parent, ok := r.refs[ref]; ok {
		commit.ParentHashes = []plumbing.Hash{parent}
	}
	r.refs[ref] = r.store(t, commit)
	return r.refs[ref].String()
}

// Tag adds an annotated tag ("v1") of a commit.
func (s *Server) Tag(t testing.TB, name, tag, commit string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[name]
	r.refs["refs/tags/"+tag] = r.store(t, &object.Tag{
		Name: tag, Message: "Release", TargetType: plumbing.CommitObject, Target: plumbing.NewHash(commit),
		Tagger: object.Signature{Name: "Maya Ortiz", Email: "maya@acme.test", When: time.Unix(1767225600, 0).UTC()},
	})
}

// Requests returns the requests received, as "GET /acme/web.git/info/refs".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Uploads returns the upload-pack requests received.
func (s *Server) Uploads() []*packp.UploadRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.uploads)
}

type encodable interface {
	Encode(plumbing.EncodedObject) error
}

func (r *repository) store(t testing.TB, o encodable) plumbing.Hash {
	encoded := r.objects.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		t.Fatal(err)
	}
	hash, err := r.objects.SetEncodedObject(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// tree stores a directory.
func (r *repository) tree(t testing.TB, files map[string]string) plumbing.Hash {
	directories, out := map[string]map[string]string{}, &object.Tree{}
	for name, content := range files {
		if directory, rest, nested := strings.Cut(name, "/"); nested {
			if directories[directory] == nil {
				directories[directory] = map[string]string{}
			}
			directories[directory][rest] = content
			continue
		}
		mode, plain := filemode.Regular, name
		if link, is := strings.CutSuffix(name, "@"); is {
			mode, plain = filemode.Symlink, link
		}
		blob := r.objects.NewEncodedObject()
		blob.SetType(plumbing.BlobObject)
		w, _ := blob.Writer()
		_, _ = io.WriteString(w, content)
		_ = w.Close()
		hash, err := r.objects.SetEncodedObject(blob)
		if err != nil {
			t.Fatal(err)
		}
		out.Entries = append(out.Entries, object.TreeEntry{Name: plain, Mode: mode, Hash: hash})
	}
	for name, inside := range directories {
		out.Entries = append(out.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: r.tree(t, inside)})
	}
	slices.SortFunc(out.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return r.store(t, out)
}

// sortName is Git's sort key of a tree entry.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// ServeHTTP implements Git's smart protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.Before != nil && s.Before(w, r) {
		return
	}
	if user, password, _ := r.BasicAuth(); s.Password != "" && (user != s.Username || password != s.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="Git"`)
		http.Error(w, "the password "+password+" is wrong", http.StatusUnauthorized)
		return
	}
	name, service, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.repos[name]
	switch {
	case repo == nil:
		http.Error(w, "no such repository", http.StatusNotFound)
	case service == "info/refs" && r.URL.Query().Get("service") == "git-upload-pack":
		s.advertise(w, repo)
	case service == "git-upload-pack" && r.Method == http.MethodPost:
		s.upload(w, r, repo)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) advertise(w http.ResponseWriter, repo *repository) {
	out := packp.NewAdvRefs()
	out.Prefix = [][]byte{[]byte("# service=git-upload-pack"), pktline.Flush}
	for _, c := range s.Capabilities {
		_ = out.Capabilities.Set(c)
	}
	_ = out.Capabilities.Set(capability.SymRef, "HEAD:"+repo.head)
	head := repo.refs[repo.head]
	out.Head = &head
	maps.Copy(out.References, repo.refs)
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	_ = out.Encode(w)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, repo *repository) {
	wanted := packp.NewUploadRequest()
	body, err := io.ReadAll(r.Body)
	plain, filtered := withoutFilter(body)
	if err == nil {
		err = wanted.Decode(bytes.NewReader(plain))
	}
	if err != nil || len(wanted.Wants) != 1 {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	s.uploads = append(s.uploads, wanted)
	shallow := !wanted.Depth.IsZero()
	hashes, commit := repo.reachable(wanted.Wants[0], shallow, filtered)
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	lines := pktline.NewEncoder(w)
	if shallow {
		_ = lines.EncodeString("shallow " + commit.String())
		_ = lines.Flush()
	}
	_ = lines.EncodeString("NAK\n")
	var to io.Writer = w
	switch {
	case wanted.Capabilities.Supports(capability.Sideband64k):
		to = sideband.NewMuxer(sideband.Sideband64k, w)
	case wanted.Capabilities.Supports(capability.Sideband):
		to = sideband.NewMuxer(sideband.Sideband, w)
	}
	_, _ = packfile.NewEncoder(to, repo.objects, false).Encode(hashes, 10)
	if to != io.Writer(w) {
		_ = lines.Flush()
	}
}

// withoutFilter removes the filter line, which the library can write but not read.
func withoutFilter(body []byte) (rest []byte, filtered bool) {
	at := bytes.Index(body, []byte("filter blob:limit="))
	if at < 4 {
		return body, false
	}
	size, err := strconv.ParseInt(string(body[at-4:at]), 16, 32)
	if err != nil || at-4+int(size) > len(body) {
		return body, false
	}
	return slices.Concat(body[:at-4], body[at-4+int(size):]), true
}

// filteredName is the file that the host leaves out if a request filters large files.
const filteredName = "large.bin"

// reachable lists the objects of a pack.
func (r *repository) reachable(from plumbing.Hash, shallow, filtered bool) (hashes []plumbing.Hash, commit plumbing.Hash) {
	seen := map[plumbing.Hash]bool{}
	add := func(h plumbing.Hash) {
		if !seen[h] {
			seen[h] = true
			hashes = append(hashes, h)
		}
	}
	commit = from
	if tag, err := object.GetTag(r.objects, from); err == nil {
		add(from)
		commit = tag.Target
	}
	for next := []plumbing.Hash{commit}; len(next) > 0; next = next[1:] {
		c, err := object.GetCommit(r.objects, next[0])
		if err != nil {
			continue
		}
		add(c.Hash)
		add(c.TreeHash)
		tree, _ := c.Tree()
		walker := object.NewTreeWalker(tree, true, nil)
		walker.SkipPathValidation()
		for {
			name, entry, err := walker.Next()
			if err != nil {
				break
			}
			if !filtered || path.Base(name) != filteredName {
				add(entry.Hash)
			}
		}
		if !shallow {
			next = append(next, c.ParentHashes...)
		}
	}
	return hashes, commit
}
