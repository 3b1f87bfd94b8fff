package lockfiles

import (
	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/supplychain/osv"
)

type composerPackage struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Require    dict   `json:"require"`
	RequireDev dict   `json:"require-dev"`
}

// readComposer reads composer.lock. The direct packages are in composer.json.
func readComposer(f file) ([]entry, error) {
	var entries []entry
	d := newDocument(f.content)
	err := d.members(func(section string, _ int) error {
		if section != "packages" && section != "packages-dev" {
			return d.SkipValue()
		}
		return d.elements(func(line int) error {
			var p composerPackage
			if err := json.UnmarshalDecode(d.Decoder, &p); err != nil {
				return err
			}
			e := entry{name: p.Name, version: p.Version, line: line, keys: []string{composerName(p.Name)}}
			for name := range p.Require { // what is no package, such as php and ext-json, is not in the file
				e.requires = append(e.requires, composerName(name))
			}
			entries = append(entries, e)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	content := f.sibling("composer.json")
	if content == nil {
		return entries, nil
	}
	manifest, err := decode[composerPackage](content)
	if err != nil {
		return entries, nil
	}
	root := entry{root: true}
	for _, names := range []dict{manifest.Require, manifest.RequireDev} {
		for name := range names {
			root.requires = append(root.requires, composerName(name))
		}
	}
	return append(entries, root), nil
}

func composerName(name string) string { return osv.PackageName("composer", name) }
