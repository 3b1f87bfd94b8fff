// Package places turns the paths that tools write into paths of the repository: relative, with forward slashes, and
// without "..".
package places

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Given is what the caller of an upload says about the paths in its report.
type Given struct {
	// CheckoutRoot is the absolute directory of the checkout on the machine of the scanner, or empty.
	CheckoutRoot string
	// PathPrefix is the directory of the repository that relative paths begin at, or empty.
	PathPrefix string
	// Project is the name of the project. It helps to guess the root if groups nest.
	Project string
}

var (
	errRoot   = errors.New("must be an absolute directory below the root of the file system, such as /builds/acme/web or C:\\agent\\web")
	errPrefix = errors.New(`must be a directory of the repository, such as services/web: relative, without ".." and control characters`)
)

// Check returns the field that is wrong, and why.
func (g Given) Check() (field string, err error) {
	dir := root(literal(g.CheckoutRoot))
	if g.CheckoutRoot != "" && (dir == "" || hasDrive(dir) && len(dir) == len("C:")) {
		return "checkout_root", errRoot
	}
	prefix := literal(g.PathPrefix)
	if IsAbsolute(prefix) || slices.Contains(strings.Split(prefix, "/"), "..") || strings.ContainsFunc(prefix, unicode.IsControl) {
		return "path_prefix", errPrefix
	}
	return "", nil
}

// Fault is what is wrong with a path that is kept nevertheless.
type Fault int

const (
	// Climbs says that the path left the repository by "..", and that its leading "../" are removed.
	Climbs Fault = iota + 1
	// Absolute says that no root of the path is known.
	Absolute
	// OnHost says that the path begins with what may be a host or a directory.
	OnHost
)

// Resolver makes paths relative to the repository.
type Resolver struct {
	prefix, project string
	given           string // root of the caller; one of roots
	// roots are the absolute directories that may be the checkout, the most reliable first.
	roots []string
	// servers are the roots on a file server. They are compared in any case.
	servers []string
	// starts are absolute directories that relative paths may begin at.
	starts []string
}

// New returns a resolver. given must have passed Check.
func New(given Given) *Resolver {
	r := &Resolver{given: root(literal(given.CheckoutRoot)), project: given.Project}
	r.AddRoot(literal(given.CheckoutRoot))
	if prefix := path.Clean(literal(given.PathPrefix)); prefix != "." {
		r.prefix = prefix
	}
	return r
}

// AddRoot adds a decoded directory that the report declares as the checkout. It ignores directories that are not
// absolute.
func (r *Resolver) AddRoot(dir string) {
	onServer := strings.HasPrefix(dir, "//")
	dir = root(dir)
	if dir == "" || slices.Contains(r.roots, dir) {
		return
	}
	r.roots = append(r.roots, dir)
	if onServer {
		r.servers = append(r.servers, dir)
	}
}

// AddStart adds a decoded directory that the tool was started in.
func (r *Resolver) AddStart(dir string) {
	if dir = root(dir); dir != "" {
		r.starts = append(r.starts, dir)
	}
}

// Resolve returns the path in the repository. It is empty if the path names no file. own is the path as written, and
// joined is the same path with the base that the report declares for it; both are decoded (see [Decode]).
func (r *Resolver) Resolve(own, joined string) (string, Fault) {
	full := Normalise(joined)
	if !IsAbsolute(full) {
		return r.relative(full)
	}
	if rest, ok := r.inside(joined, full); ok {
		return r.below(rest), 0
	}
	start := Normalise(own)
	switch {
	case strings.HasPrefix(joined, hostMark):
		// Many tools write file:// before a relative path, and its first part looks like a host.
		file, fault := r.relative(full[1:])
		if fault == 0 && strings.HasPrefix(own, hostMark) {
			fault = OnHost
		}
		return file, fault
	case !IsAbsolute(start):
		// The base is the root of the file system or unknown, so the path as written is better.
		return r.relative(start)
	case strings.Trim(start, "/") == "" || hasDrive(start) && len(start) <= len("C:/"):
		return "", 0
	}
	return full, Absolute
}

// inside returns the part of an absolute path below the first root that contains it.
func (r *Resolver) inside(decoded, full string) (string, bool) {
	if strings.HasPrefix(decoded, "//") {
		for _, root := range r.servers {
			if rest, ok := underIn(full, root, strings.EqualFold); ok {
				return rest, true
			}
		}
	}
	host := ""
	if strings.HasPrefix(decoded, hostMark) {
		host, full = onHost(full)
	}
	for _, root := range r.roots {
		if rest, ok := under(full, root); ok && (host == "" || isTelling(root) || looksLikeHost.MatchString(host)) {
			return rest, true
		}
	}
	return "", false
}

var (
	// looksLikeHost matches a qualified name, an address, and the host name of a container.
	looksLikeHost = regexp.MustCompile(`\.|^[0-9a-f]{12}$`)
	// adminShare matches the share of a Windows drive.
	adminShare = regexp.MustCompile(`^/([A-Za-z])\$(/|$)`)
)

// isTelling reports whether a directory below the first part of a path shows that this part is a host. A directory
// such as /src does not: in file://web/src/a.go, web is probably a directory, too.
func isTelling(root string) bool { return strings.Count(root, "/") > 1 || hasDrive(root) }

// onHost splits the normal form of a path with a host.
func onHost(full string) (host, local string) {
	host, local, _ = strings.Cut(full[1:], "/")
	return host, slashes(adminShare.ReplaceAllString("/"+local, "$1:$2"))
}

// below adds the prefix to a path that was absolute, unless the path has it already.
func (r *Resolver) below(rest string) string {
	if _, has := under(rest, r.prefix); rest == "" || r.prefix == "" || has {
		return rest
	}
	return r.prefix + "/" + rest
}

// relative places a clean relative path in the repository.
func (r *Resolver) relative(file string) (string, Fault) {
	if file == "" || file == "." {
		return "", 0
	}
	if !climbs(file) {
		return path.Join(r.prefix, file), 0
	}
	// The tool may have climbed to the root of the file system first.
	if rest, ok := under("/"+withoutClimbs(file), r.given); ok && r.given != "" {
		return r.below(rest), 0
	}
	for _, start := range r.starts {
		joined := Normalise(start + "/" + file)
		if rest, ok := r.inside(joined, joined); ok {
			return r.below(rest), 0
		}
	}
	switch file = path.Join(r.prefix, file); {
	case climbs(file):
		return withoutClimbs(file), Climbs
	case file == ".":
		return "", 0
	}
	return file, 0
}

func climbs(file string) bool { return file == ".." || strings.HasPrefix(file, "../") }

func withoutClimbs(file string) string {
	for climbs(file) {
		file = strings.TrimPrefix(strings.TrimPrefix(file, ".."), "/")
	}
	return file
}

// hostMark begins the decoded form of a file URI with a host. It has more slashes than any path that a tool writes.
const hostMark = "///"

// minServer is the number of parts of a directory on a file server: its host and its share.
const minServer = 2

// Decode removes the file scheme, decodes percent signs, and replaces backslashes. It does not resolve "." and "..".
// A file in an archive (jar:file:/x/a.jar!/B.class) has the path of the archive before its own.
func Decode(uri string) string {
	s := strings.TrimSpace(uri)
	if strings.Contains(s, "!/") {
		if scheme, rest, ok := strings.Cut(s, ":"); ok && slices.Contains(archiveSchemes, strings.ToLower(scheme)) {
			s = rest
		}
	}
	host := ""
	if HasFileScheme(s) {
		s = s[len("file:"):]
		if rest, ok := strings.CutPrefix(s, "//"); ok {
			s = strings.TrimPrefix(rest, "localhost")
			host = hostMark
		}
	}
	if decoded, err := url.PathUnescape(s); err == nil {
		s = decoded
	}
	s = slashes(s)
	if host == "" || hasDrive(s) || s == "" || s[0] == '/' || s[0] == '.' {
		return s
	}
	return host + s
}

// archiveSchemes are the schemes before the URI of an archive.
var archiveSchemes = []string{"jar", "zip", "war", "ear", "wsjar", "vfs"}

// literal is the decoded form of a directory that a person wrote: percent signs mean themselves outside of a URI.
func literal(dir string) string {
	if HasFileScheme(strings.TrimSpace(dir)) {
		return Decode(dir)
	}
	return slashes(strings.TrimSpace(dir))
}

// slashes replaces backslashes, removes the prefix of extended-length Windows paths, and writes the drive in upper
// case.
func slashes(s string) string {
	s = strings.ReplaceAll(s, `\`, "/")
	for _, extended := range []string{"//?/", "//./"} {
		rest, ok := strings.CutPrefix(s, extended)
		if server, unc := strings.CutPrefix(rest, "UNC/"); ok && unc {
			return "//" + server
		}
		if ok && hasDrive(rest) {
			s = rest
		}
	}
	if bare := strings.TrimPrefix(s, "/"); hasDrive(bare) {
		return strings.ToUpper(bare[:1]) + bare[1:]
	}
	return s
}

// Normalise resolves "." and ".." in a decoded path.
func Normalise(s string) string {
	if s == "" {
		return ""
	}
	if hasDrive(s) {
		return s[:2] + path.Clean("/"+strings.TrimLeft(s[2:], "/"))
	}
	return path.Clean(s)
}

// root is the normal form of a decoded root. It is empty if dir is no absolute directory, or is the root of the file
// system, which would make every absolute path look relative.
func root(dir string) string {
	full := strings.TrimSuffix(Normalise(dir), "/")
	if !IsAbsolute(full) || strings.HasPrefix(dir, hostMark) && strings.Count(full, "/") < minServer {
		return ""
	}
	return full
}

// HasFileScheme reports whether s is a file URI.
func HasFileScheme(s string) bool { return len(s) >= 5 && strings.EqualFold(s[:5], "file:") }

// hasDrive reports whether a path starts with a Windows drive letter.
func hasDrive(s string) bool {
	if len(s) < 2 || s[1] != ':' || (len(s) > 2 && s[2] != '/') {
		return false
	}
	return 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z'
}

// IsAbsolute reports whether a decoded path is absolute.
func IsAbsolute(s string) bool { return strings.HasPrefix(s, "/") || hasDrive(s) }

// under returns the part of a path below a directory. Windows ignores case.
func under(full, dir string) (string, bool) {
	if hasDrive(dir) {
		return underIn(full, dir, strings.EqualFold)
	}
	return underIn(full, dir, func(a, b string) bool { return a == b })
}

func underIn(full, dir string, equal func(a, b string) bool) (string, bool) {
	if len(full) < len(dir) || len(full) > len(dir) && full[len(dir)] != '/' || !equal(full[:len(dir)], dir) {
		return "", false
	}
	return strings.TrimPrefix(full[len(dir):], "/"), true
}
