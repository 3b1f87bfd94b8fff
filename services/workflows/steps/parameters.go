package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/workflows/step"
)

// parameters are the typed parameters of a kind.
type parameters interface {
	// problem describes what is invalid; "" if nothing is. open names the parameters that expressions will set.
	problem(open map[string]bool) string
}

// checked builds the Check function of a kind from its parameters.
func checked[P parameters]() func(with map[string]any) error {
	return func(with map[string]any) error {
		open, fixed := map[string]bool{}, map[string]any{}
		for name, value := range with {
			if open[name] = containsExpression(value); !open[name] {
				fixed[name] = value
			}
		}
		for _, name := range slices.Sorted(maps.Keys(with)) {
			if known := names[P](); !slices.Contains(known, name) {
				return fmt.Errorf("there is no parameter %q, want one of %s", name, strings.Join(known, ", "))
			}
		}
		p, err := decode[P](fixed)
		if err != nil {
			return err
		}
		if problem := p.problem(open); problem != "" {
			return errors.New(problem)
		}
		return nil
	}
}

// decodeParameters decodes the parameters of a call. An error is permanent.
func decodeParameters[P parameters](call step.Call) (P, error) {
	p, err := decode[P](call.With)
	if err != nil {
		return p, step.Permanent("%w", err)
	}
	if problem := p.problem(nil); problem != "" {
		return p, step.Permanent("%s", problem)
	}
	return p, nil
}

func decode[P any](with map[string]any) (p P, err error) {
	text, err := json.Marshal(with)
	if err != nil {
		return p, errors.New("the parameters are not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&p)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return p, fmt.Errorf("parameter %s must be %s, got %s", mistyped.Field, typeName(mistyped.Type), mistyped.Value)
	}
	return p, err
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another value"
}

// names lists the parameters of a kind, in struct order.
func names[P any]() []string {
	t := reflect.TypeFor[P]()
	out := make([]string, t.NumField())
	for i := range out {
		out[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return out
}

func containsExpression(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "${{")
	case []any:
		return slices.ContainsFunc(v, containsExpression)
	case map[string]any:
		for _, child := range v {
			if containsExpression(child) {
				return true
			}
		}
	}
	return false
}

// id is a numeric id, given as a number or a string: the API writes ids as strings.
type id int64

// UnmarshalJSON reads both forms.
func (n *id) UnmarshalJSON(text []byte) error {
	plain := strings.Trim(string(text), `"`)
	number, err := strconv.ParseInt(plain, 10, 64)
	if err != nil {
		float, ferr := strconv.ParseFloat(plain, 64) // as 17.0 or 1.7e1
		if number = int64(float); ferr != nil || float64(number) != float {
			return errors.New("an id must be a whole number")
		}
	}
	*n = id(number)
	return nil
}

// words is a list of strings, or a single string.
type words []string

// UnmarshalJSON reads both forms.
func (w *words) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		var one string
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		*w = words{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}

// firstUnknown returns the first word that is not allowed.
func (w words) firstUnknown(allowed ...string) (string, bool) {
	for _, word := range w {
		if !slices.Contains(allowed, word) {
			return word, true
		}
	}
	return "", false
}

// output builds a result without artifacts.
func output(value any) (step.Result, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return step.Result{}, step.Permanent("the output is no JSON")
	}
	return step.Result{Output: text}, nil
}
