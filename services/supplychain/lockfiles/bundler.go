package lockfiles

import "strings"

// readBundler reads Gemfile.lock. The gems of PATH are directories of the project.
//
//	GEM
//	  specs:
//	    rack (2.2.8)
//	      webrick (~> 1.8)
//	DEPENDENCIES
//	  rack (~> 2.2)!
func readBundler(f file) ([]entry, error) {
	var entries []entry
	root := entry{root: true}
	section, line := "", 0
	for text := range strings.Lines(string(f.content)) {
		line++
		content := strings.TrimSpace(text)
		if content == "" {
			continue
		}
		name, version, _ := strings.Cut(content, " ")
		switch indent := strings.IndexFunc(text, func(r rune) bool { return r != ' ' }); {
		case indent == 0:
			section = content
		case indent == 2 && section == "DEPENDENCIES":
			root.requires = append(root.requires, strings.TrimSuffix(name, "!"))
		case indent == 4 && version != "": // with the platform: 1.15.4-x86_64-linux
			version, _, _ = strings.Cut(strings.Trim(version, "()"), "-")
			entries = append(entries, entry{name: name, version: version, line: line, keys: []string{name}, root: section == "PATH"})
		case indent == 6 && len(entries) > 0:
			last := &entries[len(entries)-1]
			last.requires = append(last.requires, name)
		}
	}
	return append(entries, root), nil
}
