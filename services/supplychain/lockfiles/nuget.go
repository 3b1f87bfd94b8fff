package lockfiles

import (
	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/supplychain/osv"
)

// readNuget reads packages.lock.json: the packages of each target framework. Projects are listed, but are no packages.
func readNuget(f file) ([]entry, error) {
	var entries []entry
	d := newDocument(f.content)
	err := d.members(func(section string, _ int) error {
		if section != "dependencies" {
			return d.SkipValue()
		}
		return d.members(func(framework string, _ int) error {
			key := func(name string) string { return framework + " " + osv.PackageName("nuget", name) }
			return d.members(func(name string, line int) error {
				var p struct {
					Type         string `json:"type"`
					Resolved     string `json:"resolved"`
					Dependencies dict   `json:"dependencies"`
				}
				if err := json.UnmarshalDecode(d.Decoder, &p); err != nil {
					return err
				}
				if p.Type == "Project" {
					return nil
				}
				e := entry{name: name, version: p.Resolved, line: line, transitivity: Transitive, keys: []string{key(name)}}
				if p.Type == "Direct" {
					e.transitivity = Direct
				}
				for required := range p.Dependencies {
					e.requires = append(e.requires, key(required))
				}
				entries = append(entries, e)
				return nil
			})
		})
	})
	return entries, err
}
