package clone

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/palisade/palisade/services/internal/egress"
)

// Source is the address of a repository and the credential to read it.
type Source struct {
	// URL is the URL that Git clones: https://git.acme.test/acme/web.git, without credentials.
	URL string
	// Username and Password are the HTTP credentials. If both are empty, none are sent.
	Username, Password string
	// MultiACK says that the host serves only clients with the capability multi_ack_detailed, as Azure DevOps does.
	MultiACK bool
}

// Limits limit the received data. Zero values mean the defaults, never "no limit".
type Limits struct {
	// Timeout applies to the whole fetch; 0 is 10 minutes.
	Timeout time.Duration
	// Pack is the size of Git's pack in bytes; 0 is 512 MiB.
	Pack int64
	// Refs is the size of the host's list of refs in bytes. It is read into memory; 0 is 64 MiB, a million refs.
	Refs int64
	// Inflated is the size of all unpacked objects in bytes; 0 is 2 GiB.
	Inflated int64
	// Object is the size of the largest unpacked object in bytes; 0 is 128 MiB.
	Object int64
	// File is in bytes: hosts that support it leave out larger files. 0 requests all files.
	File int64
}

const (
	defaultTimeout  = 10 * time.Minute
	defaultPack     = 512 << 20
	defaultRefs     = 64 << 20
	defaultInflated = 2 << 30
	defaultObject   = 128 << 20
	// maxRedirects applies to one request. Redirects must stay at the host.
	maxRedirects = 5
	// cacheSize is the memory for objects while a pack is read.
	cacheSize = 32 * cache.MiByte
	// staleAfter is the age at which the directory of a crashed fetch is removed.
	staleAfter = 24 * time.Hour
	prefix     = "checkout-"
)

func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value *int64
		other int64
	}{{&l.Pack, defaultPack}, {&l.Refs, defaultRefs}, {&l.Inflated, defaultInflated}, {&l.Object, defaultObject}} {
		if *field.value <= 0 {
			*field.value = field.other
		}
	}
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	return l
}

// Checkout is the code of one commit.
type Checkout struct {
	// Commit is its hash. Ref is the full name of the ref, or the hash if a commit was requested.
	Commit, Ref string
	// At is when the commit was made, by the clock of its committer.
	At time.Time

	tree    *object.Tree
	storage *filesystem.Storage
	dir     string
}

// Close removes the received data.
func (c *Checkout) Close() error { return os.RemoveAll(c.dir) }

// Fetch receives the commit of a ref: a branch, a tag, a full ref, a full commit hash, or the default branch for "". It
// works in a new directory under dir. All errors are [*Error] or the context's error.
func Fetch(ctx context.Context, guard *egress.Guard, source Source, ref, dir string, limits Limits) (_ *Checkout, err error) {
	limits = limits.withDefaults()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, limits.Timeout)
	defer cancel()
	session, connection, err := open(guard, source, limits)
	defer func() { err = explain(caller, err, connection) }()
	if err != nil {
		return nil, err
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	full, want, err := resolve(advertised, ref)
	if err != nil {
		return nil, err
	}
	work, err := makeDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkout{Ref: full, dir: work, storage: filesystem.NewStorage(osfs.New(work), cache.NewObjectLRU(cacheSize))}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if err := c.receive(ctx, session, request(advertised, want, source, limits), limits); err != nil {
		return nil, err
	}
	return c, c.find(want)
}

// open prepares a session with the source. It changes no process-wide state.
func open(guard *egress.Guard, source Source, limits Limits) (transport.UploadPackSession, *confined, error) {
	client := guard.Client(egress.Limits{Timeout: limits.Timeout, MaxResponse: limits.Pack, MaxRedirects: maxRedirects})
	connection := &confined{
		host: hostOf(source.URL), next: client.Transport,
		list: guard.Client(egress.Limits{Timeout: limits.Timeout, MaxResponse: limits.Refs}).Transport,
	}
	client.Transport = connection
	endpoint, err := transport.NewEndpoint(source.URL)
	if err != nil || endpoint.Protocol != "https" && endpoint.Protocol != "http" {
		return nil, connection, &Error{Text: "the repository's address is not an https:// URL", Permanent: true}
	}
	connection.scheme = endpoint.Protocol
	var auth transport.AuthMethod
	if source.Username != "" || source.Password != "" {
		auth = &githttp.BasicAuth{Username: source.Username, Password: source.Password}
	}
	session, err := githttp.NewClient(client).NewUploadPackSession(endpoint, auth)
	return session, connection, err
}

// request asks for one commit without its history, if the host supports that.
func request(advertised *packp.AdvRefs, want plumbing.Hash, source Source, limits Limits) *packp.UploadPackRequest {
	r := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	r.Wants = []plumbing.Hash{want}
	if advertised.Capabilities.Supports(capability.Shallow) {
		r.Depth = packp.DepthCommits(1)
		_ = r.Capabilities.Set(capability.Shallow)
	}
	if source.MultiACK { // the library removes it from the host's list; without commits of our own, there is nothing to acknowledge
		_ = r.Capabilities.Set(capability.MultiACKDetailed)
	}
	if limits.File > 0 && advertised.Capabilities.Supports(capability.Filter) {
		r.Filter = packp.FilterBlobLimit(uint64(limits.File)+1, packp.BlobLimitPrefixNone)
		_ = r.Capabilities.Set(capability.Filter)
	}
	return r
}

// receive stores the pack and inspects it before it is unpacked.
func (c *Checkout) receive(ctx context.Context, session transport.UploadPackSession, r *packp.UploadPackRequest, limits Limits) error {
	response, err := session.UploadPack(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Close() }()
	file, err := os.Create(filepath.Join(c.dir, "received"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(file, content(response, r.Capabilities)); err != nil {
		return err
	}
	if err := inspect(file, limits); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := packfile.UpdateObjectStorage(c.storage, file); err != nil {
		return err
	}
	return os.Remove(file.Name())
}

// content returns the pack from the protocol's channels.
func content(response io.Reader, capabilities *capability.List) io.Reader {
	switch {
	case capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

// find opens the commit; tags are followed.
func (c *Checkout) find(hash plumbing.Hash) error {
	const maxTags = 5 // a tag of a tag of a tag
	for range maxTags {
		tag, err := object.GetTag(c.storage, hash)
		if err != nil {
			break
		}
		hash = tag.Target
	}
	commit, err := object.GetCommit(c.storage, hash)
	if err != nil {
		return &Error{Text: fmt.Sprintf("%s is not a commit, or the host did not send it", c.Ref), Permanent: true}
	}
	if c.tree, err = commit.Tree(); err != nil {
		return err
	}
	c.Commit, c.At = hash.String(), commit.Committer.When
	return nil
}

// makeDir creates a working directory and removes stale ones.
func makeDir(parent string) (string, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
	return os.MkdirTemp(parent, prefix)
}
