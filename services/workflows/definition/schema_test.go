package definition_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/workflows/definition"
)

func TestCheckInputs(t *testing.T) {
	parsed, problems := definition.Parse([]byte(everything), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct{ given, want string }{
		{`{"severity":"low"}`, `{"dry_run":false,"limit":10,"refs":["main"],"severity":"low"}`},
		{`{"severity":"high","limit":3,"refs":[],"dry_run":true,"ratio":0.5,"options":{"a":[1]}}`, `{"dry_run":true,"limit":3,"options":{"a":[1]},"ratio":0.5,"refs":[],"severity":"high"}`},
		{`{}`, "inputs: missing property 'severity'"},
		{`{"severity":"medium"}`, "inputs: severity: value must be one of 'low', 'high'"},
		{`{"severity":"low","limit":1.5}`, "inputs: limit: got number, want integer"},
		{`{"severity":"low","limit":null}`, "inputs: limit: got null, want integer"},
		{`{"severity":"low","refs":["a",1]}`, "inputs: refs.1: got number, want string"},
		{`{"severity":"low","dry_run":"no"}`, "inputs: dry_run: got string, want boolean"},
		{`{"severity":"low","lmit":1}`, "inputs: additional properties 'lmit' not allowed"},
	} {
		var given map[string]any
		if err := json.Unmarshal([]byte(c.given), &given); err != nil {
			t.Fatal(err)
		}
		before := len(given)
		got, err := definition.CheckInputs(parsed.Entry.GetInputs(), given)
		if strings.HasPrefix(c.want, "inputs") {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.given, err, c.want)
			}
			continue
		}
		text, _ := json.Marshal(got)
		if err != nil || string(text) != c.want || len(given) != before {
			t.Errorf("%s: %s (%v), want %s", c.given, text, err, c.want)
		}
	}
	got, err := definition.CheckInputs(nil, nil)
	if err != nil || !reflect.DeepEqual(got, map[string]any{}) {
		t.Errorf("a workflow without inputs: %v (%v)", got, err)
	}
}
