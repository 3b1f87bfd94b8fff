package lockfiles

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"go.yaml.in/yaml/v3"
)

var errAlias = errors.New("aliases in YAML are not supported")

// documents returns the documents of a YAML file. No package manager writes anchors; a few lines of them can stand for
// gigabytes, so a file with an alias is refused.
func documents(content []byte) ([]*yaml.Node, error) {
	if err := crowded(content, "\n", ",", "[", "{", ": ", "- ", "? "); err != nil {
		return nil, err
	}
	var out []*yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var doc yaml.Node
		switch err := in.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		if aliased(&doc) {
			return nil, errAlias
		}
		if len(doc.Content) > 0 {
			out = append(out, doc.Content[0])
		}
	}
}

func aliased(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return true
	}
	for _, child := range n.Content {
		if aliased(child) {
			return true
		}
	}
	return false
}

// members are the keys and values of a mapping; another node has none.
func members(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// member returns a value of a mapping, or nil.
func member(n *yaml.Node, name string) *yaml.Node {
	for key, value := range members(n) {
		if key.Value == name {
			return value
		}
	}
	return nil
}

// scalar returns the text of a member, or "".
func scalar(n *yaml.Node, name string) string {
	if value := member(n, name); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}
