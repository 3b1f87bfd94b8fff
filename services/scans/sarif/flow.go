package sarif

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Flow is a path through the code to a result (codeFlows, SARIF 3.36), for example of untrusted data.
type Flow struct {
	Message string
	// Threads are the flows of single threads; most tools write one.
	Threads []Thread
}

// Thread is the flow of one thread (SARIF 3.37).
type Thread struct {
	ID, Message string
	Steps       []Step
}

// Step is one place of a flow (SARIF 3.38). It may have no place, only a message.
type Step struct {
	RelatedLocation
	// Snippet is the code of the place. It is empty if it may contain a secret.
	Snippet string
	// Kinds are words such as source, sink, call or branch.
	Kinds []string
	// Nesting is the depth of calls.
	Nesting int
	// Importance is essential, important or unimportant, or empty.
	Importance string
}

// Fix is a change that the tool proposes (SARIF 3.55).
type Fix struct {
	Description string
	Changes     []Change
}

// Change replaces the code from line and column up to the end line and column, in one file, by a text.
type Change struct {
	Path                             string
	Line, Column, EndLine, EndColumn int
	Inserted                         string
}

// Bounds of what is kept of flows and fixes. Longer ones are cut, with a warning.
const (
	maxFlows       = 10
	maxThreads     = 10
	maxSteps       = 200 // of all flows of a result
	maxStepSnippet = 4 << 10
	maxFlowBytes   = 64 << 10 // of the texts of all flows and fixes of a result
	maxFixes       = 5
	maxChanges     = 20
)

type wireCodeFlow struct {
	Message     *wireMessage    `json:"message"`
	ThreadFlows wireThreadFlows `json:"threadFlows"`
}

type wireThreadFlow struct {
	ID        string       `json:"id"`
	Message   *wireMessage `json:"message"`
	Locations wireSteps    `json:"locations"`
}

type wireStep struct {
	Index        *integer       `json:"index"`
	Location     *wireLocation  `json:"location"`
	Kinds        capped[string] `json:"kinds"`
	NestingLevel *integer       `json:"nestingLevel"`
	Importance   string         `json:"importance"`
}

// The lists of flows keep far fewer elements than other lists, because they are nested. more says that some are
// skipped.
type (
	wireCodeFlows struct {
		list []wireCodeFlow
		more bool
	}
	wireThreadFlows struct {
		list []wireThreadFlow
		more bool
	}
	wireSteps struct {
		list []wireStep
		more bool
	}
)

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *wireCodeFlows) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	l.list, l.more, err = upTo[wireCodeFlow](dec, maxFlows)
	return err
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *wireThreadFlows) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	l.list, l.more, err = upTo[wireThreadFlow](dec, maxThreads)
	return err
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *wireSteps) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	l.list, l.more, err = upTo[wireStep](dec, maxSteps)
	return err
}

// upTo decodes the first n elements of an array.
func upTo[T any](dec *jsontext.Decoder, n int) (list []T, more bool, err error) {
	if dec.PeekKind() != '[' {
		var all capped[T] // accepts null, and describes anything else
		return nil, false, json.UnmarshalDecode(dec, &all)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false, err
	}
	for dec.PeekKind() != ']' {
		if len(list) >= n {
			more = true
			if err := dec.SkipValue(); err != nil {
				return nil, false, err
			}
			continue
		}
		var item T
		if err := json.UnmarshalDecode(dec, &item); err != nil {
			return nil, false, err
		}
		list = append(list, item)
	}
	_, err = dec.ReadToken()
	return list, more, err
}

// flowTable reads the run's table of steps, to which flows refer by index.
func (r *reader) flowTable(run *Run) error {
	full := false
	return r.list(run, false, func(int) error {
		if full {
			return r.Skip()
		}
		var step wireStep
		start := r.Offset()
		if _, err := r.decode(run, &step, never); err != nil {
			return err
		}
		if full = !r.charge(int(r.Offset()-start) + 512); full {
			run.warn("threadFlowLocations from index %d on are ignored: the report describes more than fits", len(run.flowTable))
			return nil
		}
		run.flowTable = append(run.flowTable, step) // also a broken one, so that the indexes of the others stay valid
		return nil
	})
}

// contextReader collects flows and fixes of one result within the bounds.
type contextReader struct {
	run         *Run
	w           *wireResult
	r           redactor
	steps, size int
	cut         bool
}

// addContext adds flows, related locations and fixes. The redactor knows the secret of the result, if it has one.
func (run *Run) addContext(res *Result, w *wireResult, r redactor) {
	for i := range w.RelatedLocations {
		if related, ok := run.related(&w.RelatedLocations[i]); ok && len(res.Related) < maxRelated {
			related.Message = jsonstream.Cut(r.text(links(related.Message, w)), maxRelatedMessage)
			related.Logical = r.text(related.Logical)
			res.Related = append(res.Related, related)
		}
	}
	if len(w.CodeFlows.list) == 0 && len(w.Fixes) == 0 {
		return
	}
	c := &contextReader{run: run, w: w, r: r, cut: w.CodeFlows.more}
	for i := range w.CodeFlows.list {
		if flow := c.flow(&w.CodeFlows.list[i]); len(flow.Threads) > 0 {
			res.Flows = append(res.Flows, flow)
		}
	}
	if !r.hides { // the fix of a secret shows the secret
		for i := range w.Fixes[:min(len(w.Fixes), maxFixes)] {
			if fix, ok := c.fix(&w.Fixes[i]); ok {
				res.Fixes = append(res.Fixes, fix)
			}
		}
	}
	if c.cut {
		run.told.cutFlows++
	}
}

// text redacts and counts a text. A text over the bound is left out.
func (c *contextReader) text(s string, most int) string {
	s = jsonstream.Cut(c.r.text(strings.TrimRight(jsonstream.Clean(s), " \t\r\n")), most)
	if c.size += len(s); c.size > maxFlowBytes {
		c.cut = true
		return ""
	}
	return s
}

func (c *contextReader) message(m *wireMessage) string {
	if m == nil {
		return ""
	}
	text := m.Text
	if text == "" {
		text = m.Markdown
	}
	return c.text(links(arguments(text, m.Arguments), c.w), maxRelatedMessage)
}

func (c *contextReader) flow(w *wireCodeFlow) (flow Flow) {
	c.cut = c.cut || w.ThreadFlows.more
	flow.Message = c.message(w.Message)
	for i := range w.ThreadFlows.list {
		from := &w.ThreadFlows.list[i]
		c.cut = c.cut || from.Locations.more
		thread := Thread{ID: c.text(from.ID, maxName), Message: c.message(from.Message)}
		for n := range from.Locations.list {
			if c.steps >= maxSteps || c.size > maxFlowBytes {
				c.cut = true
				break
			}
			if step, ok := c.step(&from.Locations.list[n]); ok {
				c.steps++
				thread.Steps = append(thread.Steps, step)
			}
		}
		if len(thread.Steps) > 0 {
			flow.Threads = append(flow.Threads, thread)
		}
	}
	return flow
}

// step converts a step. It reports false for one that says nothing. What the step says itself wins over the table.
func (c *contextReader) step(w *wireStep) (step Step, ok bool) {
	if i := w.Index; i != nil && *i >= 0 && int(*i) < len(c.run.flowTable) {
		known, own := c.run.flowTable[*i], *w
		w = &known
		if own.Location != nil {
			w.Location = own.Location
		}
		if own.NestingLevel != nil {
			w.NestingLevel = own.NestingLevel
		}
		if own.Importance != "" {
			w.Importance = own.Importance
		}
		if len(own.Kinds) > 0 {
			w.Kinds = own.Kinds
		}
	}
	if w.Location != nil {
		var message string
		step.RelatedLocation, ok = c.run.related(w.Location)
		message, step.Logical = c.message(w.Location.Message), c.text(step.Logical, maxLogical)
		step.Message = message
		if p := w.Location.PhysicalLocation; p != nil && !c.r.hides {
			code := snippetOf(p.Region)
			if code == "" {
				code = snippetOf(p.ContextRegion)
			}
			step.Snippet = c.text(code, maxStepSnippet)
		}
	}
	for _, kind := range w.Kinds[:min(len(w.Kinds), 10)] {
		step.Kinds = append(step.Kinds, c.text(kind, 64))
	}
	if w.NestingLevel != nil {
		step.Nesting = int(*w.NestingLevel)
	}
	switch w.Importance {
	case "essential", "important", "unimportant":
		step.Importance = w.Importance
	}
	return step, ok || step.Message != ""
}

func (c *contextReader) fix(w *wireFix) (fix Fix, ok bool) {
	if w.Description != nil {
		text := w.Description.Text
		if text == "" {
			text = w.Description.Markdown
		}
		fix.Description = c.text(text, maxRelatedMessage)
	}
	for _, file := range w.Changes[:min(len(w.Changes), maxChanges)] {
		path, _ := c.run.paths.resolve(file.ArtifactLocation)
		for _, replacement := range file.Replacements[:min(len(file.Replacements), maxChanges)] {
			at := Result{}
			at.region(replacement.Deleted)
			change := Change{Path: path, Line: at.Line, Column: at.Column, EndLine: at.EndLine, EndColumn: at.EndColumn}
			if replacement.Inserted != nil {
				change.Inserted = c.text(replacement.Inserted.Text, maxFlowBytes)
			}
			if c.size > maxFlowBytes { // a partial fix is useless
				return Fix{}, false
			}
			if fix.Changes = append(fix.Changes, change); len(fix.Changes) >= maxChanges {
				break
			}
		}
	}
	return fix, fix.Description != "" || len(fix.Changes) > 0
}
