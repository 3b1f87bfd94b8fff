package formats

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// startsAsXML reports whether the first character of a document is "<".
func startsAsXML(head []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	return bytes.HasPrefix(text, []byte("<"))
}

// sketchXML reads the beginning of an XML document. The root element tells the format, so errors after it do not
// matter: the reader of the format reports them.
func (o *Outline) sketchXML(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits) error {
	o.Root, limits.MaxBytes = '<', min(limits.MaxBytes, headSize)
	x, err := openXML(ctx, src, limits)
	if err != nil {
		return err
	}
	root, err := x.root()
	if err != nil {
		return err
	}
	o.Namespace = xmlNamespace(root)
	_ = o.element(x, root, "", nil)
	return nil
}

// element adds an open element at a path.
func (o *Outline) element(x *xmlStream, e *xml.StartElement, path string, names []string) error {
	if len(names) >= outlineDepth || len(o.paths) >= outlineNames {
		return x.skipTo(len(x.open) - 1)
	}
	if path != "" {
		path += "."
	}
	path += e.Name.Local
	names = o.add(path, names, e.Name.Local)
	for depth := len(x.open); len(x.open) >= depth; {
		token, err := x.next()
		if err != nil {
			return err
		}
		if child, ok := token.(xml.StartElement); ok {
			if err := o.element(x, &child, path, names); err != nil {
				return err
			}
		}
	}
	return nil
}
