package sarif

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/places"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// pathResolver makes artifact locations relative to the repository (SARIF 3.4, 3.14.14).
type pathResolver struct {
	*places.Resolver
	bases     map[string]wireArtifactLocation
	artifacts []wireArtifactLocation
	last      resolved // results of one file follow each other
}

// resolved is a location with its path.
type resolved struct {
	uri, base string
	path      string
	fault     pathFault
	rebased   bool // written with another root
}

// pathFault is what is wrong with a path that is kept nevertheless; 0 if nothing is.
type pathFault int

const (
	// pathClimbs says that leading "../" are removed.
	pathClimbs = pathFault(places.Climbs)
	// pathAbsolute says that the root is unknown.
	pathAbsolute = pathFault(places.Absolute)
	// pathOnHost says that it begins with what may be a host.
	pathOnHost = pathFault(places.OnHost)
	// pathTooLong says that it is cut.
	pathTooLong = pathOnHost + 1
	pathFaults  = pathTooLong + 1
)

const maxPath = 4096

var (
	otherScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	// rootBase matches the base ids that mean the checkout by convention. A run with several checkouts numbers them.
	rootBase = regexp.MustCompile(`(?i)^%?(?:src_?root|project_?root|repo_?root|root_?path|checkout_?root|srcdir|root)(\d*)%?$`)
)

// newPathResolver knows the roots that the caller and the run declare, the most reliable first: the caller's, the
// directories of the repositories, the usual base ids, the working directories, and the outermost other bases.
func newPathResolver(run *Run, given places.Given) *pathResolver {
	p := &pathResolver{Resolver: places.New(given), bases: run.bases, artifacts: run.artifacts}
	var named, numbered, others []string
	for _, id := range slices.Sorted(maps.Keys(run.bases)) {
		dir := p.base(id, 0)
		switch number := rootBase.FindStringSubmatch(id); {
		case number == nil:
			others = append(others, dir)
		case number[1] == "":
			named = append(named, dir)
		default:
			numbered = append(numbered, dir)
		}
	}
	var repositories, started []string
	for _, location := range run.mappedTo {
		repositories = append(repositories, p.directory(location))
	}
	for _, inv := range run.invoked {
		dir := p.directory(inv.workingDirectory)
		started = append(started, dir)
		p.AddStart(dir)
	}
	for _, dir := range slices.Concat(outermost(repositories), named, outermost(numbered), started, outermost(others)) {
		p.AddRoot(dir)
	}
	return p
}

// outermost sorts directories so that those that may contain others come first.
func outermost(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return dirs
}

// resolve returns the path of a location: relative if possible, with forward slashes, percent-decoded. It is empty if
// the result names no file.
func (p *pathResolver) resolve(loc *wireArtifactLocation) (string, pathFault) {
	uri, base := p.written(loc)
	if uri == "" {
		return "", 0
	}
	if p.last.uri != uri || p.last.base != base {
		p.last = resolved{uri: uri, base: base}
		p.last.path, p.last.fault = p.place(uri, base)
	}
	return p.last.path, p.last.fault
}

// written is a location as the report has it. It may be an index into the artifacts.
func (p *pathResolver) written(loc *wireArtifactLocation) (uri, base string) {
	if loc == nil {
		return "", ""
	}
	if loc.URI == "" && loc.Index != nil && *loc.Index >= 0 && int(*loc.Index) < len(p.artifacts) {
		loc = &p.artifacts[*loc.Index]
	}
	return loc.URI, loc.URIBaseID
}

func (p *pathResolver) place(uri, base string) (string, pathFault) {
	file, isOther := nonFile(uri)
	fault := places.Fault(0)
	if !isOther {
		own := redactTokens(places.Decode(uri)) // before "//" is joined
		file, fault = p.Resolve(own, p.join(own, base, 0))
		p.last.rebased = places.IsAbsolute(own) || fault != 0
	}
	file = redactTokens(jsonstream.Clean(file))
	if len(file) > maxPath {
		return jsonstream.Cut(file, maxPath), pathTooLong
	}
	return file, pathFault(fault)
}

// maxChain bounds how far base ids may refer to each other. It ends cycles.
const maxChain = 16

// join appends a decoded path to its base, if that is known. The result is not normalised yet.
func (p *pathResolver) join(own, base string, depth int) string {
	if places.IsAbsolute(own) || base == "" {
		return own
	}
	dir := p.base(base, depth)
	if dir == "" {
		return own
	}
	return strings.TrimSuffix(dir, "/") + "/" + own
}

// directory is the decoded directory at a location.
func (p *pathResolver) directory(loc wireArtifactLocation) string {
	return p.join(places.Decode(loc.URI), loc.URIBaseID, 0)
}

// base is the decoded directory of a base id. It is empty for unknown ids and for ids without a URI, which stand for
// the checkout.
func (p *pathResolver) base(id string, depth int) string {
	def, ok := p.bases[id]
	if _, other := nonFile(def.URI); !ok || other || depth >= maxChain {
		return ""
	}
	return p.join(places.Decode(def.URI), def.URIBaseID, depth+1)
}

// nonFile reports whether a URI is not a file, and removes user name and password from it.
func nonFile(uri string) (string, bool) {
	uri = strings.TrimSpace(uri)
	if !strings.Contains(uri, "://") || places.HasFileScheme(uri) || !otherScheme.MatchString(uri) {
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
	if strings.Contains(rest, "/..") {
		rest = withoutClimbs(rest)
	}
	return scheme + "://" + rest, true
}

// withoutClimbs resolves the ".." of a URL's path; the query stays.
func withoutClimbs(rest string) string {
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	host, file, _ := strings.Cut(rest[:end], "/")
	return host + path.Clean("/"+file) + rest[end:]
}
