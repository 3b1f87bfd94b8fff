package formats

import (
	"cmp"
	"net/url"
	"strings"

	packageurl "github.com/package-url/packageurl-go"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/supplychain/purl"
)

const (
	// maxParts is how many components of a document are kept, to find them by their reference.
	maxParts = maxDependencies
	// maxPartBytes bounds their texts.
	maxPartBytes = 48 << 20
	// maxEdges is how many relations between components are kept.
	maxEdges = 1_000_000
	// maxChildren is how many of them are stored with one dependency.
	maxChildren = 1000
)

// bom is the bill of materials of a document: its components, and which of them require others.
type bom struct {
	parts []part
	refs  map[string]int32
	roots []int32 // what the document is about
	bytes int
	edges int
}

// part is a component.
type part struct {
	name, version, ecosystem, purl string
	// place is the file that it comes from, or empty.
	place    string
	licenses []string
	children []int32
	// isPackage says that it is a dependency, and not a group of them such as a lockfile.
	isPackage, isRoot bool
	transitivity      string
}

// add keeps a component. Its name and version come from its package URL, if it has one.
func (b *bom) add(ref string, p part) error {
	if parsed, ok := purl.Parse(p.purl); ok {
		p.name, p.version, p.ecosystem = parsed.Name, cmp.Or(parsed.Version, p.version), parsed.Ecosystem
	} else {
		p.purl = ""
	}
	if b.refs == nil {
		b.refs = map[string]int32{}
	}
	b.bytes += len(ref) + len(p.name) + len(p.version) + len(p.purl) + len(p.place)
	for _, license := range p.licenses {
		b.bytes += len(license)
	}
	if len(b.parts) >= maxParts || b.bytes > maxPartBytes {
		return errManyPackages
	}
	n := int32(len(b.parts))
	b.parts = append(b.parts, p)
	if _, known := b.refs[ref]; !known && ref != "" {
		b.refs[ref] = n
	}
	if p.isRoot {
		b.roots = append(b.roots, n)
	}
	return nil
}

// find returns the component with a reference, or nil. A link to a component of another document ends with its
// reference there.
func (b *bom) find(ref string) *part {
	if n, ok := b.refs[ref]; ok {
		return &b.parts[n]
	}
	if _, fragment, isLink := strings.Cut(ref, "#"); isLink && strings.HasPrefix(ref, "urn:cdx:") {
		if decoded, err := url.PathUnescape(fragment); err == nil {
			fragment = decoded
		}
		if n, ok := b.refs[fragment]; ok {
			return &b.parts[n]
		}
		ref = fragment
	}
	if parsed, ok := purl.Parse(ref); ok {
		return &part{name: parsed.Name, version: parsed.Version, ecosystem: parsed.Ecosystem, purl: ref, isPackage: true}
	}
	return nil
}

// relate records that a component requires another one.
func (b *bom) relate(from, to int32) error {
	if from == to {
		return nil
	}
	if b.edges++; b.edges > maxEdges {
		return &jsonstream.LimitError{What: "it lists more relations between packages than a bill of materials may have", Max: maxEdges}
	}
	b.parts[from].children = append(b.parts[from].children, to)
	return nil
}

// resolve follows the relations from the roots. What a root requires is direct. Groups, such as a lockfile, stand for
// what they contain, and give it their name as its file.
func (b *bom) resolve() {
	type step struct {
		at     int32
		direct bool
		place  string
	}
	queue := make([]step, 0, len(b.roots))
	for _, root := range b.roots {
		queue = append(queue, step{root, true, ""})
	}
	visited := make([]bool, len(b.parts))
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		p := &b.parts[s.at]
		dependency := p.isPackage && !p.isRoot
		if dependency && (p.transitivity == "" || s.direct) {
			p.transitivity = "transitive"
			if s.direct {
				p.transitivity = "direct"
			}
		}
		if visited[s.at] {
			continue
		}
		visited[s.at] = true
		if !p.isRoot && !p.isPackage && looksLikeFile(p.name) {
			s.place = p.name
		}
		p.place = cmp.Or(p.place, s.place)
		for _, child := range p.children {
			queue = append(queue, step{child, s.direct && !dependency, s.place})
		}
	}
}

// looksLikeFile reports whether the name of a group is a file, such as "web/package-lock.json".
func looksLikeFile(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.Contains(base, ".") || strings.HasSuffix(base, "file")
}

// about is the name of what the document is about. The root comes after its own parts.
func (b *bom) about() string {
	if len(b.roots) == 0 {
		return ""
	}
	return b.parts[b.roots[len(b.roots)-1]].name
}

// write writes the packages as dependencies. about names what the document is about.
func (b *bom) write(w *Writer, about string) error {
	b.resolve()
	for i := range b.parts {
		p := &b.parts[i]
		if !p.isPackage || p.isRoot || p.name == "" {
			continue
		}
		d := Dependency{
			Lockfile: cmp.Or(p.place, about), Ecosystem: p.ecosystem, Name: p.name, Version: p.version, Transitivity: p.transitivity, Licenses: p.licenses,
		}
		for _, child := range p.children[:min(len(p.children), maxChildren)] {
			if c := &b.parts[child]; c.isPackage {
				d.Children = append(d.Children, c.name+"@"+c.version)
			}
		}
		if err := w.Dependency(d); err != nil {
			return err
		}
	}
	return nil
}

// url is the package URL of a component. One without has the URL of a package of no ecosystem.
func (p *part) url() string {
	if p.purl != "" || p.name == "" {
		return p.purl
	}
	return packageurl.NewPackageURL(packageurl.TypeGeneric, "", p.name, p.version, nil, "").ToString()
}

// file is the file of the component in the repository. The packages of a system have none.
func (p *part) file() string {
	for _, system := range [...]string{"pkg:apk/", "pkg:deb/", "pkg:rpm/", "pkg:alpm/"} {
		if strings.HasPrefix(p.purl, system) {
			return ""
		}
	}
	return p.place
}
