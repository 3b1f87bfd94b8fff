package formats

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

const (
	// maxElement is the size of one element of the streamed list in bytes, which is decoded as a whole.
	maxElement = 1 << 20
	// maxDocMember and maxDoc bound the members of doc, in bytes. Larger ones are left out.
	maxDocMember, maxDoc = 64 << 10, 1 << 20
)

// mapped converts one document by a mapping.
type mapped struct {
	*Mapping
	in    *Input
	w     *Writer
	scope scope
	found bool // the list of results
}

func (m *Mapping) convert(in *Input, w *Writer) error {
	c := &mapped{Mapping: m, in: in, w: w, scope: scope{varDoc: map[string]any{}, varParent: map[string]any{}, varItem: nil, varKey: ""}}
	if err := in.Walk(c.document); err != nil {
		return err
	}
	c.scope[varParent] = c.scope[varDoc]
	tool := Tool{Name: m.Tool.Name, Product: m.Tool.Product}
	var problems []string
	text := func(e *expr) string {
		value, err := e.eval(in.ctx, c.scope)
		if err != nil {
			problems = append(problems, err.Error())
		}
		return textOf(value)
	}
	tool.Version, tool.Category = text(&m.Tool.Version.expr), text(&m.Tool.Category.expr)
	failed := text(&m.Tool.Failed.expr)
	w.Run(tool)
	for _, problem := range problems {
		w.Warn("tool: %s", problem)
	}
	switch failed {
	case "", "false":
	case "true":
		w.Fail("the tool did not finish")
	default:
		w.Fail(failed)
	}
	if err := in.Walk(func(s *jsonstream.Stream) error { return c.walk(s, m.path) }); err != nil {
		return err
	}
	if !c.found {
		w.Fail("the report has no " + m.Results)
	}
	return nil
}

// document reads the members of the document that do not have the results.
func (c *mapped) document(s *jsonstream.Stream) error {
	doc, size := c.scope[varDoc].(map[string]any), 0
	_, err := s.ObjectOf(func(name string) error {
		if name == c.path[0] || c.path[0] == "*" {
			return s.Skip()
		}
		raw, ok, err := s.Value()
		if !ok || err != nil || len(raw) > maxDocMember || size+len(raw) > maxDoc {
			return err
		}
		size += len(raw)
		var value any
		if json.Unmarshal(raw, &value, jsonstream.Options) == nil {
			doc[name] = value
		}
		return nil
	})
	return err
}

// walk follows the path of the results to the first list, and streams its elements.
func (c *mapped) walk(s *jsonstream.Stream, path []string) error {
	switch rest := path[1:]; path[0] {
	case "[]":
		at, kind := s.Pointer(), s.Kind()
		ok, err := s.ArrayOf(func(i int) error { return c.element(s, rest, "") })
		c.found = c.found || ok && kind != 'n'
		if !ok && err == nil {
			c.w.Unreadable(at, "is "+jsonstream.KindName(kind)+", want an array")
		}
		return err
	case "*":
		at, kind := s.Pointer(), s.Kind()
		ok, err := s.ObjectOf(func(name string) error { return c.element(s, rest, name) })
		c.found = c.found || ok
		if !ok && err == nil {
			c.w.Unreadable(at, "is "+jsonstream.KindName(kind)+", want an object")
		}
		return err
	default:
		_, err := s.ObjectOf(func(name string) error {
			if name == path[0] {
				return c.walk(s, rest)
			}
			return s.Skip()
		})
		return err
	}
}

// element reads an element of the streamed list. rest is the path of the results in it.
func (c *mapped) element(s *jsonstream.Stream, rest []string, key string) error {
	raw, ok, err := s.Value()
	if err != nil {
		return err
	}
	at := s.Pointer()
	if !ok || len(raw) > maxElement {
		c.w.Unreadable(at, jsonstream.OverSize(maxElement))
		return nil
	}
	var value any
	if err := json.Unmarshal(raw, &value, jsonstream.Options); err != nil {
		c.w.Unreadable(at, jsonstream.Describe(err))
		return nil
	}
	c.scope[varKey] = key
	if len(rest) == 0 {
		return c.result(at, value)
	}
	c.scope[varParent] = value
	return c.inside(at, value, rest)
}

// inside visits the results in an element that was read.
func (c *mapped) inside(at string, value any, path []string) error {
	if len(path) == 0 {
		return c.result(at, value)
	}
	switch v := value.(type) {
	case []any:
		if path[0] != "[]" {
			break
		}
		for i, one := range v {
			if err := c.inside(at+"/"+strconv.Itoa(i), one, path[1:]); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if path[0] == "[]" {
			break
		}
		if path[0] != "*" {
			one, exists := v[path[0]]
			if !exists || one == nil {
				return nil // an element without results
			}
			return c.inside(at+"/"+path[0], one, path[1:])
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			c.scope[varKey] = name
			if err := c.inside(at+"/"+name, v[name], path[1:]); err != nil {
				return err
			}
		}
		return nil
	case nil:
		return nil
	}
	c.w.Unreadable(at, fmt.Sprintf("does not match %q of the mapping", c.Mapping.Results))
	return nil
}

// result writes one result.
func (c *mapped) result(at string, item any) error {
	c.scope[varItem] = item
	e := &evaluation{c: c, at: at}
	f := &c.Mapping.Result
	if e.yes(&f.Skip) {
		return nil
	}
	r := &Result{
		Rule: Rule{
			ID: e.text(&f.Rule), Name: e.text(&f.RuleName), Description: e.text(&f.RuleDescription), Help: e.text(&f.Help), HelpURI: e.text(&f.HelpURI),
			CWE: e.texts(&f.CWE), OWASP: e.texts(&f.OWASP), Tags: e.texts(&f.Tags), References: e.texts(&f.References),
		},
		Message: e.text(&f.Message), Severity: e.text(&f.Severity), Score: e.text(&f.Score), Confidence: e.text(&f.Confidence),
		Path: e.text(&f.Path), Line: e.number(&f.Line), Column: e.number(&f.Column), EndLine: e.number(&f.EndLine), EndColumn: e.number(&f.EndColumn),
		Logical: e.text(&f.Logical), Snippet: e.text(&f.Snippet), Product: e.text(&f.Product),
	}
	if name, purl := e.text(&f.Package), e.text(&f.PURL); name != "" || purl != "" {
		r.Package = &Package{
			Name: name, PURL: purl, Version: e.text(&f.PackageVersion), Fixed: e.texts(&f.PackageFixed), Ecosystem: e.text(&f.Ecosystem),
			Advisory: e.text(&f.Advisory),
		}
	}
	if print := e.text(&f.Fingerprint); print != "" {
		r.Fingerprints = map[string]string{"mapping/v1": print}
	}
	if reason := e.text(&f.Reason); e.yes(&f.Suppressed) {
		r.Suppressed = &Suppression{Reason: reason}
	}
	if cmp.Or(r.Rule.ID, r.Message, r.Path) == "" {
		c.w.Unreadable(at, "has neither rule nor message nor path by the mapping")
		return nil
	}
	if f.Rule.program == nil {
		r.Rule.ID = c.Mapping.Tool.Name + "/unnamed" // the format has no rules
	}
	return c.w.Result(r)
}

// evaluation evaluates the expressions of one result. A failing expression leaves its fact empty, with a warning.
type evaluation struct {
	c  *mapped
	at string
}

func (e *evaluation) value(of *expr) any {
	value, err := of.eval(e.c.in.ctx, e.c.scope)
	if err != nil {
		e.c.w.Fail("an expression of the mapping fails")
		e.c.w.Fixed(e.at, jsonstream.Fix{Problem: err.Error() + ": ignored"})
	}
	return value
}

func (e *evaluation) text(of *expr) string    { return textOf(e.value(of)) }
func (e *evaluation) texts(of *expr) []string { return textsOf(e.value(of)) }
func (e *evaluation) number(of *expr) int     { return numberOf(e.value(of)) }

func (e *evaluation) yes(of *expr) bool {
	yes, _ := e.value(of).(bool)
	return yes
}
