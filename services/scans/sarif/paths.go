package sarif

import (
	"errors"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pathResolver makes artifact locations relative to the checkout (SARIF 3.4, 3.14.14).
type pathResolver struct {
	bases     map[string]wireArtifactLocation
	artifacts []wireArtifactLocation
	// roots are the absolute directories that may be the checkout, the most reliable first.
	roots []string
}

var (
	errEscapes  = errors.New("its path leaves the repository by \"..\"")
	errLongPath = errors.New("its path has more than 4096 bytes")
)

const maxPath = 4096

var (
	otherScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	// rootBase matches the base ids that mean the checkout by convention.
	rootBase = regexp.MustCompile(`(?i)^%?(?:src_?root|project_?root|repo_?root|root_?path|checkout_?root|srcdir|root)%?$`)
)

func newPathResolver(run *Run) *pathResolver {
	p := &pathResolver{bases: run.bases, artifacts: run.artifacts}
	var others []string
	for _, id := range slices.Sorted(maps.Keys(run.bases)) {
		dir, _ := p.base(id, 0)
		if rootBase.MatchString(id) {
			p.addRoot(dir)
		} else {
			others = append(others, dir)
		}
	}
	for _, inv := range run.invoked {
		dir, _ := p.join(inv.workingDirectory)
		p.addRoot(dir)
	}
	// Other bases may contain the root only if they are the outermost.
	slices.SortFunc(others, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for _, dir := range others {
		p.addRoot(dir)
	}
	return p
}

// addRoot accepts absolute directories only. The root of the file system would make every absolute path look relative.
func (p *pathResolver) addRoot(dir string) {
	if dir == "" {
		return
	}
	dir = strings.TrimSuffix(normalise(dir), "/")
	if isAbsolute(dir) && !slices.Contains(p.roots, dir) {
		p.roots = append(p.roots, dir)
	}
}

// resolve returns the path of a location: relative if possible, with forward slashes, percent-decoded. It is empty if
// the result names no file.
func (p *pathResolver) resolve(loc *wireArtifactLocation) (string, error) {
	if loc == nil {
		return "", nil
	}
	at := *loc
	if at.URI == "" && at.Index != nil && *at.Index >= 0 && int(*at.Index) < len(p.artifacts) {
		at = p.artifacts[*at.Index]
	}
	if at.URI == "" {
		return "", nil
	}
	if uri, ok := nonFile(at.URI); ok {
		return p.checked(uri)
	}
	climbs := slices.Contains(strings.Split(normaliseRaw(at.URI), "/"), "..")
	joined, _ := p.join(at)
	full := normalise(joined)
	switch {
	case full == "..", strings.HasPrefix(full, "../"):
		return "", errEscapes
	case !isAbsolute(full):
		return p.checked(strings.TrimPrefix(full, "./"))
	}
	for _, root := range p.roots {
		if rest, ok := under(full, root); ok {
			return p.checked(rest)
		}
	}
	if climbs {
		return "", errEscapes
	}
	if own := normaliseRaw(at.URI); !isAbsolute(own) {
		// The base is the root of the file system or unknown, so the path as written is better.
		return p.checked(strings.TrimPrefix(normalise(own), "./"))
	}
	return p.checked(full)
}

func (p *pathResolver) checked(s string) (string, error) {
	s = clean(s)
	if len(s) > maxPath {
		return "", errLongPath
	}
	if s == "." {
		return "", nil
	}
	return s, nil
}

// maxChain bounds how far base ids may refer to each other. It ends cycles.
const maxChain = 16

// join appends a location to its base, if that is known. The result is not normalised yet.
func (p *pathResolver) join(loc wireArtifactLocation) (string, bool) {
	return p.joinDepth(loc, 0)
}

func (p *pathResolver) joinDepth(loc wireArtifactLocation, depth int) (string, bool) {
	own := normaliseRaw(loc.URI)
	if isAbsolute(own) || loc.URIBaseID == "" {
		return own, own != ""
	}
	dir, known := p.base(loc.URIBaseID, depth)
	if !known || dir == "" {
		return own, own != ""
	}
	return strings.TrimSuffix(dir, "/") + "/" + own, true
}

// base is the directory of a base id. Unknown ids, and ids without a URI, stand for the checkout.
func (p *pathResolver) base(id string, depth int) (string, bool) {
	def, ok := p.bases[id]
	if !ok || depth >= maxChain {
		return "", false
	}
	if _, other := nonFile(def.URI); other {
		return "", false
	}
	return p.joinDepth(def, depth+1)
}

// nonFile reports whether a URI is not a file, and removes user name and password from it.
func nonFile(uri string) (string, bool) {
	uri = strings.TrimSpace(uri)
	if !strings.Contains(uri, "://") || hasFileScheme(uri) || !otherScheme.MatchString(uri) {
		return "", false
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return scheme + "://" + rest, true
}

// normaliseRaw strips the file scheme, decodes, and replaces backslashes, but does not resolve "." and "..".
func normaliseRaw(uri string) string {
	s := strings.TrimSpace(uri)
	if hasFileScheme(s) {
		s = s[len("file:"):]
		if rest, ok := strings.CutPrefix(s, "//"); ok {
			s = strings.TrimPrefix(rest, "localhost")
		}
	}
	if decoded, err := url.PathUnescape(s); err == nil {
		s = decoded
	}
	s = strings.ReplaceAll(s, `\`, "/")
	if bare := strings.TrimPrefix(s, "/"); hasDrive(bare) {
		s = bare
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// normalise resolves "." and ".." in a decoded path.
func normalise(s string) string {
	if s == "" {
		return ""
	}
	if hasDrive(s) {
		return s[:2] + path.Clean("/"+strings.TrimLeft(s[2:], "/"))
	}
	return path.Clean(s)
}

func hasFileScheme(s string) bool { return len(s) >= 5 && strings.EqualFold(s[:5], "file:") }

// hasDrive reports whether a path starts with a Windows drive letter.
func hasDrive(s string) bool {
	if len(s) < 2 || s[1] != ':' || (len(s) > 2 && s[2] != '/') {
		return false
	}
	return 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z'
}

func isAbsolute(s string) bool { return strings.HasPrefix(s, "/") || hasDrive(s) }

func under(full, root string) (string, bool) {
	if full == root {
		return "", true
	}
	return strings.CutPrefix(full, root+"/")
}
