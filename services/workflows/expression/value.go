package expression

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxDepth limits the nesting of results.
const maxDepth = 100

// adapter exposes JSON-like values to CEL without copying them. JSON has one number type, and CEL has two that do not
// mix. A number without a fraction becomes an int, so items[0].line + 1 works with values that encoding/json decoded.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	case []map[string]any:
		return types.NewDynamicList(a, v)
	case []string:
		return types.NewStringList(a, v)
	case float64:
		return number(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return types.Int(n)
		}
		if f, err := v.Float64(); err == nil {
			return types.Double(f)
		}
		return types.NewErr("%q is not a number", short(string(v)))
	case json.RawMessage:
		var decoded any
		decoder := json.NewDecoder(bytes.NewReader(v))
		decoder.UseNumber()
		if err := decoder.Decode(&decoded); err != nil {
			return types.NewErr("a value is no JSON: %v", err)
		}
		return a.NativeToValue(decoded)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

func number(f float64) ref.Val {
	const exact = 1 << 53 // above this a float64 does not identify an integer
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return types.Int(f)
	}
	return types.Double(f)
}

var errTooLarge = fmt.Errorf("the result is larger than %d MiB", MaxResult>>20)

// fromCEL converts a CEL value to a JSON-like one and charges its size to the budget.
func fromCEL(value ref.Val, budget *int, depth int) (any, error) {
	if *budget -= 2; *budget < 0 {
		return nil, errTooLarge
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("the result is nested deeper than %d levels", maxDepth)
	}
	switch v := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("the result is not a finite number")
		}
		return float64(v), nil
	case types.String:
		return text(string(v), budget)
	case types.Bytes:
		return text(base64.StdEncoding.EncodeToString(v), budget)
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64) + "s", nil
	case traits.Mapper:
		return object(v, budget, depth)
	case traits.Lister:
		return list(v, budget, depth)
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("the result is a %s, which is not a JSON value", value.Type().TypeName())
}

func text(s string, budget *int) (any, error) {
	if *budget -= len(s); *budget < 0 {
		return nil, errTooLarge
	}
	return s, nil
}

func list(v traits.Lister, budget *int, depth int) (any, error) {
	out := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		item, err := fromCEL(it.Next(), budget, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func object(v traits.Mapper, budget *int, depth int) (any, error) {
	out := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isText := key.(types.String)
		if !isText {
			return nil, fmt.Errorf("an object has a key that is a %s, want texts", key.Type().TypeName())
		}
		if *budget -= len(name); *budget < 0 {
			return nil, errTooLarge
		}
		item, err := fromCEL(v.Get(key), budget, depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = item
	}
	return out, nil
}

// Text converts a value to the form used inside a text and compared with the cases of a switch: strings unchanged, null
// as "", lists and objects as JSON.
func Text(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
