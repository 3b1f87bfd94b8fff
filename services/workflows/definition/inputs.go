package definition

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// input is one of the workflow's inputs.
type input struct {
	field *workflowsv1.WorkflowInputField
	// schema is the JSON Schema of its value.
	schema map[string]any
}

// inputTypes maps the type words of definitions to JSON Schema types.
var inputTypes = []struct {
	word   string
	number workflowsv1.WorkflowInputType
	json   string
}{
	{"string", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_STRING, "string"},
	{"integer", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_INTEGER, "integer"},
	{"number", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_NUMBER, "number"},
	{"boolean", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_BOOLEAN, "boolean"},
	{"string_list", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_STRING_LIST, "array"},
	{"object", workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_OBJECT, "object"},
}

func (p *parser) readInputs(list *node) {
	items := p.items(list, "", "inputs")
	if len(items) > MaxInputs {
		p.problem(list.Line, "", "there are %d inputs, at most %d are allowed", len(items), MaxInputs)
		return
	}
	lines := map[string]int{}
	for _, item := range items {
		in := p.readInput(item)
		if first, twice := lines[in.field.Name]; twice && in.field.Name != "" {
			p.problem(item.Line, "", "input %s is there already, in line %d", in.field.Name, first)
			continue
		}
		lines[in.field.Name] = item.Line
		p.inputs = append(p.inputs, in)
	}
}

func (p *parser) readInput(n *node) *input {
	f := p.object(n, "", "an input", "name", "type", "required", "default", "description", "visibility", "ui", "semanticType", "enum")
	name := p.name(f["name"], n.Line, "", "name of an input")
	what := "input " + name + ": "
	in := &input{schema: map[string]any{}, field: &workflowsv1.WorkflowInputField{
		Name:         name,
		Required:     p.boolean(f["required"], "", what+"required"),
		Description:  p.text(f["description"], "", what+"description", 2000),
		SemanticType: p.word(f["semanticType"], "", what+"semanticType", "", "repository", "git_ref"),
		Visibility:   workflowsv1.WorkflowInputVisibility_WORKFLOW_INPUT_VISIBILITY_USER,
	}}
	if p.word(f["visibility"], "", what+"visibility", "user", "user", "internal") == "internal" {
		in.field.Visibility = workflowsv1.WorkflowInputVisibility_WORKFLOW_INPUT_VISIBILITY_INTERNAL
	}
	words := make([]string, len(inputTypes))
	for i, t := range inputTypes {
		words[i] = t.word
	}
	if isNull(f["type"]) {
		p.problem(n.Line, "", "%stype is missing: want one of %s", what, strings.Join(words, ", "))
		return in
	}
	word := p.word(f["type"], "", what+"type", "", words...)
	if word == "" {
		return in
	}
	kind := inputTypes[slices.Index(words, word)]
	in.field.Type, in.schema["type"] = kind.number, kind.json
	values := in.schema
	if word == "string_list" {
		values = map[string]any{"type": "string"}
		in.schema["items"] = values
	}
	if in.field.Description != "" {
		in.schema["description"] = in.field.Description
	}
	if !isNull(f["enum"]) {
		p.readEnum(values, f["enum"], word, what)
	}
	p.readUI(in, f["ui"], what)
	if !isNull(f["default"]) {
		p.readDefault(in, f["default"], what)
	}
	return in
}

func (p *parser) readEnum(values map[string]any, n *node, word, what string) {
	if word == "boolean" || word == "object" {
		p.problem(n.Line, "", "%senum is not allowed with the type %s", what, word)
		return
	}
	list, _ := p.value(n, "").([]any)
	if len(list) == 0 {
		p.problem(n.Line, "", "%senum must be a list of at least one value", what)
		return
	}
	for i, item := range list {
		if err := validate(map[string]any{"type": values["type"]}, item); err != nil {
			p.problem(n.Line, "", "%senum[%d] %s", what, i, err)
			return
		}
	}
	values["enum"] = list
}

func (p *parser) readUI(in *input, n *node, what string) {
	_, isChoice := in.schema["enum"]
	absent := "text"
	switch {
	case in.field.Type == workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_BOOLEAN:
		absent = "checkbox"
	case isChoice:
		absent = "select"
	case in.field.Type == workflowsv1.WorkflowInputType_WORKFLOW_INPUT_TYPE_OBJECT:
		absent = "textarea"
	}
	switch p.word(n, "", what+"ui", absent, "text", "textarea", "select", "checkbox") {
	case "text":
		in.field.Ui = workflowsv1.WorkflowInputUi_WORKFLOW_INPUT_UI_TEXT
	case "textarea":
		in.field.Ui = workflowsv1.WorkflowInputUi_WORKFLOW_INPUT_UI_TEXTAREA
	case "checkbox":
		in.field.Ui = workflowsv1.WorkflowInputUi_WORKFLOW_INPUT_UI_CHECKBOX
		if absent != "checkbox" {
			p.problem(n.Line, "", "%sui checkbox is for the type boolean", what)
		}
	case "select":
		in.field.Ui = workflowsv1.WorkflowInputUi_WORKFLOW_INPUT_UI_SELECT
		if !isChoice {
			p.problem(n.Line, "", "%sui select needs an enum", what)
		}
	}
}

func (p *parser) readDefault(in *input, n *node, what string) {
	value := p.value(n, "")
	if err := validate(in.schema, value); err != nil {
		p.problem(n.Line, "", "%sdefault %s", what, err)
		return
	}
	converted, err := structpb.NewValue(value)
	if err != nil {
		p.problem(n.Line, "", "%sdefault: %s", what, err)
		return
	}
	in.field.DefaultValue, in.schema["default"] = converted, value
}

// inputsOf converts inputs to the catalog's form. Their JSON Schema rejects undeclared inputs, so a misspelt name is an
// error.
func inputsOf(inputs []*input) *workflowsv1.WorkflowInputs {
	properties, required := map[string]any{}, []any{}
	out := &workflowsv1.WorkflowInputs{
		SchemaVersion: schemaVersion, TriggerKind: workflowsv1.WorkflowTriggerKind_WORKFLOW_TRIGGER_KIND_GENERIC,
	}
	for _, in := range inputs {
		properties[in.field.Name] = in.schema
		if in.field.Required {
			required = append(required, in.field.Name)
		}
		out.Fields = append(out.Fields, in.field)
	}
	schema := map[string]any{"$schema": dialect, "type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	out.JsonSchema, _ = structpb.NewStruct(schema) // the schema has only JSON values
	return out
}
