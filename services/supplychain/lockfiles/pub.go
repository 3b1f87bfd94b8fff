package lockfiles

// readPub reads pubspec.lock. It has no edges. Packages of the SDK and of directories have no version of their own.
func readPub(f file) ([]entry, error) {
	docs, err := documents(f.content)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, doc := range docs {
		for name, p := range members(member(doc, "packages")) {
			if source := scalar(p, "source"); source == "path" || source == "sdk" {
				continue
			}
			e := entry{name: name.Value, version: scalar(p, "version"), line: name.Line, transitivity: Direct}
			if scalar(p, "dependency") == "transitive" {
				e.transitivity = Transitive
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}
