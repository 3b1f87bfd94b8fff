package shipped_test

import (
	"testing"

	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/shipped"
	"github.com/palisade/palisade/services/workflows/steps"
)

func TestShippedWorkflowsAreClean(t *testing.T) {
	all, err := shipped.All()
	if err != nil || len(all) != 2 {
		t.Fatalf("%d workflows, %v", len(all), err)
	}
	for _, w := range all {
		parsed, problems := definition.Parse(w.Source, steps.Registry(steps.Needs{}))
		for _, p := range problems {
			t.Errorf("%s: %s", w.Name, p)
		}
		if parsed != nil && parsed.Entry.GetName() != w.Name {
			t.Errorf("%s is called %s", w.Name, parsed.Entry.GetName())
		}
	}
}
