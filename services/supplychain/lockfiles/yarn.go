package lockfiles

import (
	"slices"
	"strings"
)

// yarnLocal are the protocols of packages that are directories of the project.
var yarnLocal = []string{"workspace:", "file:", "link:", "portal:"}

// readYarn reads both forms of yarn.lock: version 1, and the YAML of later versions, which has as strict a layout.
//
//	"@babel/core@^7.0.0", "@babel/core@^7.1.0":      "@babel/core@npm:^7.0.0, @babel/core@npm:^7.1.0":
//	  version "7.23.0"                                 version: 7.23.0
//	  dependencies:                                    resolution: "@babel/core@npm:7.23.0"
//	    json5 "^2.2.3"                                 dependencies:
//	                                                     json5: "npm:^2.2.3"
func readYarn(f file) ([]entry, error) {
	var entries []entry
	var current *entry
	section, members := "", false
	line := 0
	for text := range strings.Lines(string(f.content)) {
		line++
		text = strings.TrimRight(text, "\r\n")
		content := strings.TrimLeft(text, " ")
		if content == "" || content[0] == '#' {
			continue
		}
		switch indent := len(text) - len(content); {
		case indent == 0:
			entries = append(entries, yarnEntry(content, line))
			current, section = &entries[len(entries)-1], ""
			members = members || strings.Contains(content, "@workspace:")
		case current == nil:
		case indent == 2:
			section = content
			current.yarnField(content)
		case indent == 4 && (section == "dependencies:" || section == "optionalDependencies:"):
			name, wanted := yarnPair(content)
			current.requires = append(current.requires, yarnKey(name+"@"+wanted))
		}
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !e.root && e.name == "__metadata" })
	return f.withPackageJSON(entries, members), nil
}

// withPackageJSON adds the project, which a lockfile of version 1 does not have. Nothing beside the lockfile says what
// the members of a workspace require.
func (f file) withPackageJSON(entries []entry, members bool) []entry {
	if members {
		return entries
	}
	p, ok := f.manifest()
	if !ok {
		return entries
	}
	root := entry{root: true, partial: len(p.Workspaces) > 0}
	for name, wanted := range p.requires(true) {
		root.requires = append(root.requires, yarnKey(name+"@"+wanted))
	}
	return append(entries, root)
}

// yarnEntry reads the line that begins a package: the patterns that it resolves.
func yarnEntry(header string, line int) entry {
	e := entry{line: line}
	header = strings.ReplaceAll(strings.TrimSuffix(header, ":"), `"`, "")
	for pattern := range strings.SplitSeq(header, ", ") {
		e.keys = append(e.keys, yarnKey(pattern))
	}
	first, _, _ := strings.Cut(header, ", ")
	e.yarnSource(first)
	return e
}

// yarnSource reads a pattern or resolution: where a package comes from, and its name if it was required by another.
func (e *entry) yarnSource(pattern string) {
	name, source := splitAt(pattern)
	for _, protocol := range yarnLocal {
		e.root = e.root || strings.HasPrefix(source, protocol)
	}
	e.name = name
	if alias, ok := strings.CutPrefix(source, "npm:"); ok {
		if other, version := splitAt(alias); version != "" {
			e.name = other
		}
	}
}

func (e *entry) yarnField(field string) {
	switch name, value := yarnPair(field); name {
	case "version":
		e.version = value
	case "resolution":
		e.yarnSource(value)
	}
}

// yarnPair reads name "value" and name: value.
func yarnPair(text string) (name, value string) {
	if rest, ok := strings.CutPrefix(text, `"`); ok {
		name, value, _ = strings.Cut(rest, `"`)
	} else {
		name, value, _ = strings.Cut(text, " ")
	}
	return strings.TrimSuffix(name, ":"), strings.Trim(value, `: "`)
}

// yarnKey is a pattern without the protocol npm, which version 3 writes only in the keys.
func yarnKey(pattern string) string {
	name, wanted := splitAt(pattern)
	return name + "@" + strings.TrimPrefix(wanted, "npm:")
}
