package definition

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// dialect is the version of JSON Schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// validate checks a JSON-like value against a schema. The error is one line.
func validate(schema map[string]any, value any) error {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	// External references are disabled: a schema is never loaded from a file or the network.
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	const name = "palisade:schema"
	if err := compiler.AddResource(name, schema); err != nil {
		return fmt.Errorf("has a schema that cannot be read: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("has a schema that cannot be read: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(value); errors.As(err, &invalid) {
		return errors.New(explain(invalid))
	} else if err != nil {
		return err
	}
	return nil
}

// explain describes the first violation with its location.
func explain(e *jsonschema.ValidationError) string {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	text := clip(e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	if place := strings.Join(e.InstanceLocation, "."); place != "" {
		return place + ": " + text
	}
	return text
}

// CheckInputs adds the defaults of absent inputs and validates all inputs against the JSON Schema of a published
// version. Values are JSON-like. The error is INVALID_ARGUMENT and names the input.
func CheckInputs(in *workflowsv1.WorkflowInputs, given map[string]any) (withDefaults map[string]any, err error) {
	withDefaults = WithDefaults(in, given)
	if err := validate(in.GetJsonSchema().AsMap(), withDefaults); err != nil {
		return nil, apierr.InvalidArgument("inputs", "inputs: %s", err)
	}
	return withDefaults, nil
}

// WithDefaults returns the given inputs with defaults added, without validation.
func WithDefaults(in *workflowsv1.WorkflowInputs, given map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, given)
	for _, field := range in.GetFields() {
		if _, isGiven := given[field.GetName()]; !isGiven && field.GetDefaultValue() != nil {
			all[field.GetName()] = field.GetDefaultValue().AsInterface()
		}
	}
	return all
}
