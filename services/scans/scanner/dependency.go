package scanner

import (
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	maxChildren = 1000
	maxURL      = 2048
)

// wireDependency is a dependency as the scanner sends it.
type wireDependency struct {
	Package      text   `json:"package"`
	Version      text   `json:"version"`
	Ecosystem    text   `json:"ecosystem"`
	Transitivity text   `json:"transitivity"`
	ResolvedURL  text   `json:"resolved_url"`
	ManifestPath text   `json:"manifest_path"`
	LockfilePath text   `json:"lockfile_path"`
	LineNumber   number `json:"line_number"`
	Licenses     texts  `json:"licenses"`
	Children     []struct {
		Package text `json:"package"`
		Version text `json:"version"`
	} `json:"children"`
}

func (w *wireDependency) dependency() *storev1.ScannerDependency {
	out := &storev1.ScannerDependency{
		Package: plain(string(w.Package), maxName), Version: plain(string(w.Version), maxName), Ecosystem: plain(string(w.Ecosystem), 64),
		Transitivity: "unknown", ResolvedUrl: withoutCredentials(plain(string(w.ResolvedURL), maxURL)),
		ManifestPath: plain(string(w.ManifestPath), maxName), LockfilePath: plain(string(w.LockfilePath), maxName), LineNumber: int32(w.LineNumber),
	}
	switch t := strings.ToLower(string(w.Transitivity)); t {
	case "direct", "transitive":
		out.Transitivity = t
	}
	for _, child := range w.Children[:min(len(w.Children), maxChildren)] {
		out.Children = append(out.Children, plain(string(child.Package)+"@"+string(child.Version), maxName))
	}
	for _, license := range w.Licenses[:min(len(w.Licenses), 20)] {
		out.Licenses = append(out.Licenses, plain(license, 255))
	}
	return out
}

// Exposure says whether the vulnerable part of a dependency is used, as the scanner shows it (scan protocol, section
// 6). A rule that looks at versions only may say under which condition the version is vulnerable.
func Exposure(match *storev1.ScannerDependencyMatch, m Metadata) string {
	switch {
	case m.SCAKind == "upgrade-only" && m.ReachableIf != "":
		return "conditionally_reachable"
	case m.SCAKind == "upgrade-only", m.SCAKind == "malicious":
		return "always_reachable"
	case m.SCAKind == "legacy", match.GetKind() == "TransitiveUndetermined":
		return "unknown"
	case match.GetKind() == "TransitiveUnreachable":
		return "unreachable"
	case match.GetReachable(), match.GetKind() == "DirectReachable", match.GetKind() == "TransitiveReachable":
		return "reachable"
	}
	return "unreachable"
}

// withoutCredentials removes the user part of a URL. URLs of private registries often have a token there.
func withoutCredentials(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if slash {
		host += "/"
	}
	return scheme + "://" + host + path
}

// lockfiles reads the dependencies of each lockfile. A large lockfile becomes several frames. The first frame has no
// path: it says that the scanner looked for lockfiles, even if it found none.
func lockfiles(doc *document, emit func(*storev1.ScannerFrame) error) error {
	if doc.kind() != '{' {
		return doc.skip()
	}
	if err := emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Lockfile{Lockfile: &storev1.ScannerLockfile{}}}); err != nil {
		return err
	}
	return doc.object(func(path string) error {
		file := &storev1.ScannerLockfile{Path: plain(path, maxName)}
		flush := func() error {
			whole := file
			file = &storev1.ScannerLockfile{Path: file.GetPath()}
			return emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Lockfile{Lockfile: whole}})
		}
		err := doc.array(func(int) error {
			w := &wireDependency{}
			problem, err := doc.item(w)
			if err != nil || problem != "" || w.Package == "" {
				return err
			}
			if file.Dependencies = append(file.Dependencies, w.dependency()); len(file.Dependencies) < lockfilePart {
				return nil
			}
			return flush()
		})
		if err != nil {
			return err
		}
		return flush() // also for a lockfile without dependencies, whose earlier ones are gone
	})
}
