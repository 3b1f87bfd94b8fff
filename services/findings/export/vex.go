package export

import (
	"bytes"
	"context"
	"strings"

	"github.com/palisade/palisade/services/findings/position"
	"github.com/palisade/palisade/services/supplychain/purl"
)

// listFormat writes a document with a head and a list with an object per finding.
type listFormat struct {
	head   any
	member string // name of the list
	of     func(*exported) any
	buffer bytes.Buffer
	more   bool
}

func (*listFormat) needs() needs { return needs{} }

func (f *listFormat) begin() ([]byte, error) {
	f.buffer.Reset()
	err := encode(&f.buffer, f.head)
	f.buffer.Truncate(f.buffer.Len() - 1) // the closing brace
	f.buffer.WriteString(`,"` + f.member + `":[`)
	return f.buffer.Bytes(), err
}

func (f *listFormat) batch(_ context.Context, b *batch) ([]byte, error) {
	f.buffer.Reset()
	for _, e := range b.rows {
		if f.more {
			f.buffer.WriteByte(',')
		}
		f.more = true
		f.buffer.WriteByte('\n')
		if err := encode(&f.buffer, f.of(e)); err != nil {
			return nil, err
		}
	}
	return f.buffer.Bytes(), nil
}

func (*listFormat) end(context.Context) ([]byte, error) { return []byte("]}\n"), nil }

// positionOf is what a finding says about the product.
func positionOf(e *exported) position.Position { return position.Of(e.Finding, e.content) }

// vulnerability is the name of what the finding is about.
func vulnerability(e *exported) string {
	return position.Vulnerability(e.Finding, e.content, e.rule.Name)
}

// packageURL names the package of a finding.
func packageURL(e *exported) string {
	found := e.content.GetFoundDependency()
	return purl.Format(found.GetEcosystem(), text(e.Package), found.GetVersion())
}

// product names the project of a finding, and its ref.
func product(e *exported) string {
	return purl.Format("", e.project.Name, strings.TrimPrefix(e.Ref, "refs/heads/"))
}
