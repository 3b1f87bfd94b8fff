package lockfiles

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// readCocoapods reads Podfile.lock. A subspec (Firebase/Core) is a part of its pod, not a package. Pods with a path are
// directories of the project.
func readCocoapods(f file) ([]entry, error) {
	docs, err := documents(f.content)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, doc := range docs {
		local := map[string]bool{}
		for name, source := range members(member(doc, "EXTERNAL SOURCES")) {
			local[name.Value] = member(source, ":path") != nil
		}
		for _, pod := range elements(member(doc, "PODS")) {
			if pod.Kind == yaml.ScalarNode {
				entries = append(entries, newPod(pod, nil, local))
			}
			for pod, required := range members(pod) {
				entries = append(entries, newPod(pod, required, local))
			}
		}
		root := entry{root: true}
		for _, pod := range elements(member(doc, "DEPENDENCIES")) {
			spec, _, _ := strings.Cut(pod.Value, " (")
			root.requires = append(root.requires, spec)
		}
		entries = append(entries, root)
	}
	return entries, nil
}

// newPod reads Name/Subspec (version).
func newPod(pod, required *yaml.Node, local map[string]bool) entry {
	spec, version, _ := strings.Cut(pod.Value, " (")
	name, _, _ := strings.Cut(spec, "/")
	e := entry{name: name, version: strings.TrimSuffix(version, ")"), line: pod.Line, keys: []string{spec}, root: local[name]}
	for _, child := range elements(required) {
		spec, _, _ := strings.Cut(child.Value, " (")
		e.requires = append(e.requires, spec)
	}
	return e
}

// elements returns the nodes of a sequence; another node has none.
func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}
