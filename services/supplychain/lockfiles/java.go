package lockfiles

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// readGradle reads gradle.lockfile: group:artifact:version=configurations. It tells neither what is direct nor edges.
func readGradle(f file) ([]entry, error) {
	var entries []entry
	line := 0
	for text := range strings.Lines(string(f.content)) {
		line++
		coordinates, _, ok := strings.Cut(strings.TrimSpace(text), "=")
		parts := strings.Split(coordinates, ":")
		if ok && len(parts) == 3 && !strings.HasPrefix(coordinates, "#") {
			entries = append(entries, entry{name: parts[0] + ":" + parts[1], version: parts[2], line: line})
		}
	}
	return entries, nil
}

// pom is what a pom.xml says itself.
type pom struct {
	properties map[string]string
	managed    map[string]string // version by name
	entries    []entry
}

type pomDependency struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
	Version  string `xml:"version"`
}

// readPom reads the dependencies of a pom.xml, which are direct. Their versions must be in the same file: literal, from
// its properties, or from its dependencyManagement. Parents and imported poms are not resolved, so a dependency without
// such a version is left out, and what dependencies require is unknown.
func readPom(f file) ([]entry, error) {
	p := pom{properties: map[string]string{}, managed: map[string]string{}}
	in := xml.NewDecoder(bytes.NewReader(f.content))
	in.CharsetReader = func(_ string, content io.Reader) (io.Reader, error) { // names are ASCII
		return charmap.ISO8859_1.NewDecoder().Reader(content), nil
	}
	if err := p.readElement(in, ""); err != nil {
		return nil, err
	}
	managed := make(map[string]string, len(p.managed))
	for name, version := range p.managed {
		managed[p.expand(name)] = version
	}
	entries := p.entries[:0]
	for _, e := range p.entries {
		e.name = p.expand(e.name)
		if e.version == "" {
			e.version = managed[e.name]
		}
		e.version = p.expand(e.version)
		if !strings.ContainsAny(e.name+e.version, "$[(,") { // neither unresolved nor a range
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// readElement reads what is inside the element at a path.
func (p *pom) readElement(in *xml.Decoder, at string) error {
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) && at == "" {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := p.readChild(in, token, at+"/"+token.Name.Local); err != nil {
				return err
			}
		}
	}
}

func (p *pom) readChild(in *xml.Decoder, start xml.StartElement, at string) error {
	line, _ := in.InputPos()
	switch at {
	case "/project", "/project/properties", "/project/parent", "/project/dependencies",
		"/project/dependencyManagement", "/project/dependencyManagement/dependencies":
		return p.readElement(in, at)
	case "/project/dependencies/dependency", "/project/dependencyManagement/dependencies/dependency":
		var d pomDependency
		if err := in.DecodeElement(&d, &start); err != nil {
			return err
		}
		name := strings.TrimSpace(d.Group) + ":" + strings.TrimSpace(d.Artifact)
		if version := strings.TrimSpace(d.Version); strings.HasPrefix(at, "/project/dependencyManagement") {
			p.managed[name] = version
		} else {
			p.entries = append(p.entries, entry{name: name, version: version, line: line, transitivity: Direct})
		}
		return nil
	case "/project/version", "/project/groupId", "/project/parent/version", "/project/parent/groupId":
		name := strings.ReplaceAll(at[1:], "/", ".")
		if err := p.readProperty(in, start, name); err != nil {
			return err
		}
		if inherited := strings.Replace(name, "parent.", "", 1); p.properties[inherited] == "" {
			p.properties[inherited] = p.properties[name]
		}
		return nil
	}
	if property, ok := strings.CutPrefix(at, "/project/properties/"); ok {
		return p.readProperty(in, start, property)
	}
	return in.Skip()
}

func (p *pom) readProperty(in *xml.Decoder, start xml.StartElement, name string) error {
	var value string
	err := in.DecodeElement(&value, &start)
	if len(value) <= maxText {
		p.properties[name] = strings.TrimSpace(value)
	}
	return err
}

var placeholder = regexp.MustCompile(`\$\{([^${}]+)\}`)

// expand replaces properties. They may name each other, in a circle too, or grow with each round.
func (p *pom) expand(text string) string {
	for range 8 {
		if len(text) > maxText || !strings.Contains(text, "${") {
			break
		}
		text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
			if value, ok := p.properties[found[2:len(found)-1]]; ok {
				return value
			}
			return found
		})
	}
	return text
}
