package formats

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxMapping is the maximal size of a mapping in bytes.
const MaxMapping = 64 << 10

// mappingName matches names of mappings, which are names of formats.
var mappingName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Mapping describes a JSON format: where its results are, and where each fact of a result is. docs/report-formats.md
// explains the file.
type Mapping struct {
	Name   string        `yaml:"name"`
	Title  string        `yaml:"title"`
	Detect mappingDetect `yaml:"detect"`
	Tool   mappingTool   `yaml:"tool"`
	// Results is the path of the list of results, such as "issues[]" or "files[].messages[]"; "*" stands for the members
	// of an object.
	Results string        `yaml:"results"`
	Result  mappingResult `yaml:"result"`

	path []string // of Results
}

type mappingDetect struct {
	Has    []string          `yaml:"has"`
	Equals map[string]string `yaml:"equals"`
}

type mappingTool struct {
	Name     string  `yaml:"name"`
	Product  string  `yaml:"product"`
	Version  docExpr `yaml:"version"`
	Category docExpr `yaml:"category"`
	Failed   docExpr `yaml:"failed"`
}

type mappingResult struct {
	Skip            expr `yaml:"skip"`
	Rule            expr `yaml:"rule"`
	RuleName        expr `yaml:"rule_name"`
	RuleDescription expr `yaml:"rule_description"`
	Help            expr `yaml:"help"`
	HelpURI         expr `yaml:"help_uri"`
	CWE             expr `yaml:"cwe"`
	OWASP           expr `yaml:"owasp"`
	Tags            expr `yaml:"tags"`
	References      expr `yaml:"references"`
	Message         expr `yaml:"message"`
	Severity        expr `yaml:"severity"`
	Score           expr `yaml:"score"`
	Confidence      expr `yaml:"confidence"`
	Path            expr `yaml:"path"`
	Line            expr `yaml:"line"`
	Column          expr `yaml:"column"`
	EndLine         expr `yaml:"end_line"`
	EndColumn       expr `yaml:"end_column"`
	Logical         expr `yaml:"logical"`
	Snippet         expr `yaml:"snippet"`
	Fingerprint     expr `yaml:"fingerprint"`
	Package         expr `yaml:"package"`
	PackageVersion  expr `yaml:"package_version"`
	PackageFixed    expr `yaml:"package_fixed"`
	Ecosystem       expr `yaml:"ecosystem"`
	PURL            expr `yaml:"purl"`
	Advisory        expr `yaml:"advisory"`
	Product         expr `yaml:"product"`
	Suppressed      expr `yaml:"suppressed"`
	Reason          expr `yaml:"suppression_reason"`
}

// expr is a CEL expression of a mapping.
type expr struct {
	text    string
	line    int
	program program
}

// docExpr is an expression that is evaluated before the results are read, so that it has only doc.
type docExpr struct{ expr }

// UnmarshalYAML implements yaml.Unmarshaler.
func (e *docExpr) UnmarshalYAML(node *yaml.Node) error { return e.parse(node, varDoc) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (e *expr) UnmarshalYAML(node *yaml.Node) error {
	return e.parse(node, varDoc, varParent, varItem, varKey)
}

func (e *expr) parse(node *yaml.Node, variables ...string) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: want a CEL expression", node.Line)
	}
	e.text, e.line = strings.TrimSpace(node.Value), node.Line
	if e.text == "" {
		return nil
	}
	var err error
	if e.program, err = compile(e.text, variables); err != nil {
		return fmt.Errorf("line %d: %w", e.line, err)
	}
	return nil
}

// ParseMapping reads a mapping and checks all of it. Errors have line numbers.
func ParseMapping(text []byte) (*Mapping, error) {
	if len(text) > MaxMapping {
		return nil, fmt.Errorf("the mapping has %d bytes; at most %d are allowed", len(text), MaxMapping)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	m := &Mapping{}
	if err := decoder.Decode(m); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the mapping is empty")
		}
		return nil, errors.New(yamlProblem(err))
	}
	return m, m.check()
}

// yamlProblem is the error in one line, in the words of mappings.
func yamlProblem(err error) string {
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		return unknownField.ReplaceAllString(strings.Join(typed.Errors, "; "), `$1: $2 is not a member of a mapping`)
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}

var unknownField = regexp.MustCompile(`(line \d+): field (\S+) not found in type \S+`)

func (m *Mapping) check() error {
	_, builtIn := Named(m.Name)
	m.path = split(m.Results)
	switch {
	case !mappingName.MatchString(m.Name):
		return fmt.Errorf("name: got %q, want lower-case letters, digits and dashes, at most 63", m.Name)
	case builtIn:
		return fmt.Errorf("name: %s is a format of Palisade; choose another name", m.Name)
	case m.Tool.Name == "":
		return errors.New("tool.name is required: findings of another tool name are other findings")
	case m.Results == "":
		return errors.New(`results is required: the path of the list of results, such as "issues[]"`)
	case m.path[len(m.path)-1] != "[]" && m.path[len(m.path)-1] != "*":
		return fmt.Errorf(`results: got %q, want a path that ends in "[]" or ".*"`, m.Results)
	case len(m.Detect.Has)+len(m.Detect.Equals) == 0:
		return errors.New(`detect is required: members that only this format has, such as has: ["issues[].checkId"]`)
	case m.Result.Rule.program == nil && m.Result.Message.program == nil:
		return errors.New("result needs rule or message")
	}
	switch m.Tool.Product {
	case "", ProductSAST, ProductSCA, ProductSecrets:
		return nil
	}
	return fmt.Errorf("tool.product: got %q, want sast, sca or secrets", m.Tool.Product)
}

// Format is the format that the mapping describes.
func (m *Mapping) Format() Format {
	return Format{Name: m.Name, Title: cmp.Or(m.Title, m.Name), Recognises: m.recognises, Convert: m.convert}
}

func (m *Mapping) recognises(o *Outline) bool {
	for _, path := range m.Detect.Has {
		if !o.Has(path) {
			return false
		}
	}
	for path, value := range m.Detect.Equals {
		if o.Value(path) != value {
			return false
		}
	}
	return true
}
