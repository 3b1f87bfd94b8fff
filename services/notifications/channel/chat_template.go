package channel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

const (
	// maxTemplated is the maximum size of what a template gives, in bytes.
	maxTemplated = 28_000
	// maxTemplateText is the maximum size of the text that a template gets, minTemplateText the size to which it is
	// shortened if the result is too large.
	maxTemplateText = 16_000
	minTemplateText = 500
	// maxFunctionInput limits the function json: nested calls would double their results.
	maxFunctionInput = 64 << 10
)

// templateFunctions are the functions that a template may call. The others can build texts of any size.
var templateFunctions = []string{"json", "and", "or", "not", "eq", "ne"}

// chatTemplate is a template of config.template. Without loops and templates in it, it ends after as many steps as it
// has parts.
type chatTemplate struct{ parsed *template.Template }

// templateFields are the fields of a template.
type templateFields struct {
	Title, Text, Link, Kind, At string
}

// parseTemplate reads a template and tries it with a sample. The error names the position, and is for the author.
func parseTemplate(text string) (*chatTemplate, error) {
	parsed, err := template.New("config.template").Funcs(template.FuncMap{"json": toJSON}).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	t := &chatTemplate{parsed}
	if len(parsed.Templates()) > 1 || parsed.Tree == nil {
		return nil, errors.New("config.template must have no define and no block, and must give JSON")
	}
	if err := t.check(parsed.Root); err != nil {
		return nil, err
	}
	// The sample has what a template must not paste into JSON without the function json.
	_, err = t.body(Message{Subject: `Test "of" a template`, Text: "A line with \\ and \"quotes\"\nand another", Link: "https://palisade.example/console", Kind: "test", At: time.Now()})
	return t, err
}

// check refuses loops, templates and functions that are not listed.
func (t *chatTemplate) check(node parse.Node) error {
	switch node := node.(type) {
	case *parse.RangeNode, *parse.TemplateNode:
		return t.refuse(node, "range, template and block are not allowed")
	case *parse.IdentifierNode:
		if !slices.Contains(templateFunctions, node.Ident) {
			return t.refuse(node, "the function "+node.Ident+" is not allowed; allowed are "+strings.Join(templateFunctions, ", "))
		}
	case *parse.ListNode:
		return t.checkAll(node.Nodes)
	case *parse.ActionNode:
		return t.check(node.Pipe)
	case *parse.IfNode:
		return t.checkBranch(&node.BranchNode)
	case *parse.WithNode:
		return t.checkBranch(&node.BranchNode)
	case *parse.PipeNode:
		for _, command := range node.Cmds {
			if err := t.checkAll(command.Args); err != nil {
				return err
			}
		}
	case *parse.ChainNode:
		return t.check(node.Node)
	}
	return nil
}

func (t *chatTemplate) checkAll(list []parse.Node) error {
	for _, node := range list {
		if err := t.check(node); err != nil {
			return err
		}
	}
	return nil
}

func (t *chatTemplate) checkBranch(branch *parse.BranchNode) error {
	if branch.ElseList != nil {
		if err := t.check(branch.ElseList); err != nil {
			return err
		}
	}
	return t.checkAll([]parse.Node{branch.Pipe, branch.List})
}

func (t *chatTemplate) refuse(node parse.Node, text string) error {
	place, _ := t.parsed.ErrorContext(node)
	return fmt.Errorf("%s: %s", place, text)
}

// body gives the JSON of a message. A long text is shortened until the result is small enough.
func (t *chatTemplate) body(m Message) ([]byte, error) {
	fields := templateFields{Title: cutBytes(m.Subject, maxSubject), Link: m.Link, Kind: m.Kind, At: m.At.UTC().Format(time.RFC3339)}
	for most := maxTemplateText; most >= minTemplateText; most /= 2 {
		fields.Text = cutBytes(m.Text, most)
		out := &limitedBuffer{most: maxTemplated}
		err := t.parsed.Execute(out, fields)
		switch {
		case errors.Is(err, errTooMuch):
			continue
		case err != nil:
			return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
		body := bytes.TrimSpace(out.Bytes())
		if problem := json.Unmarshal(body, new(any)); problem != nil {
			return nil, fmt.Errorf("config.template must give JSON, which the function json does for texts: %w, in %s", problem, near(body, problem))
		}
		return body, nil
	}
	return nil, fmt.Errorf("config.template gives more than %d bytes", maxTemplated)
}

// near quotes what is at the place of an error.
func near(body []byte, problem error) string {
	at := len(body)
	var syntax *json.SyntaxError
	if errors.As(problem, &syntax) {
		at = int(syntax.Offset)
	}
	return fmt.Sprintf("%q", bytes.ToValidUTF8(body[max(at-20, 0):min(at+20, len(body))], nil))
}

// toJSON is the function json of templates.
func toJSON(value any) (string, error) {
	if text, ok := value.(string); ok && len(text) > maxFunctionInput {
		return "", errTooMuch
	}
	return string(encode(value)), nil
}

var errTooMuch = errors.New("too much text")

// limitedBuffer refuses more than so many bytes.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errTooMuch
	}
	return b.Buffer.Write(p)
}
