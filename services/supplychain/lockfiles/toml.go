package lockfiles

import (
	"bytes"
	"regexp"

	"github.com/pelletier/go-toml/v2"
)

// tomlPackage is a package of the lockfiles in TOML: Cargo.lock, poetry.lock, uv.lock and pylock.toml. They differ in
// how a package names what it requires.
type tomlPackage struct {
	Name      string `toml:"name"`
	Version   string `toml:"version"`
	Source    any    `toml:"source"`
	Directory any    `toml:"directory"`

	Dependencies         any            `toml:"dependencies"`
	OptionalDependencies map[string]any `toml:"optional-dependencies"`
	DevDependencies      map[string]any `toml:"dev-dependencies"`

	line int
}

var tomlHeader = regexp.MustCompile(`(?m)^\[\[packages?\]\]`)

// tomlPackages reads the packages with their lines.
func tomlPackages(content []byte) ([]tomlPackage, error) {
	var lock struct {
		Package  []tomlPackage `toml:"package"`
		Packages []tomlPackage `toml:"packages"` // pylock.toml
	}
	if err := unmarshalTOML(content, &lock); err != nil {
		return nil, err
	}
	packages := append(lock.Package, lock.Packages...)
	line, offset := 1, 0
	for i, at := range tomlHeader.FindAllIndex(content, len(packages)) {
		line += bytes.Count(content[offset:at[0]], []byte("\n"))
		offset = at[0]
		packages[i].line = line
	}
	return packages, nil
}

func unmarshalTOML(content []byte, out any) error {
	if err := crowded(content, "\n", ",", "["); err != nil {
		return err
	}
	if err := crowded(content, "."); err != nil { // each makes a table if it is in a key
		return err
	}
	return toml.Unmarshal(content, out)
}

// list returns the elements of an array, or the value itself.
func list(value any) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return value
	}
	return []any{value}
}

// field returns a text of a table, or "".
func field(value any, name string) string {
	table, _ := value.(map[string]any)
	text, _ := table[name].(string)
	return text
}
