package tracker

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// transition is a step of the workflow that is possible from the status of an issue.
type transition struct {
	ID, Name    string
	To          status
	IsAvailable *bool
	Fields      map[string]transitionField
}

type transitionField struct {
	Required        bool
	HasDefaultValue bool
	// AllowedValues differ by type of field.
	AllowedValues json.RawMessage
}

// SetOpen makes a transition.
func (j *jira) SetOpen(ctx context.Context, key string, open bool, transitionID string) error {
	ticket, err := j.Get(ctx, key)
	if err != nil || ticket.Open == open {
		return err
	}
	path := "issue/" + ticket.Key + "/transitions"
	var page struct{ Transitions []transition }
	if err := j.call(ctx, http.MethodGet, path+"?expand=transitions.fields", nil, &page); err != nil {
		return err
	}
	step, err := choose(page.Transitions, open, transitionID)
	if err != nil {
		return err
	}
	body := map[string]any{"transition": map[string]string{"id": step.ID}}
	if field, ok := step.Fields["resolution"]; ok && open {
		body["fields"] = map[string]any{"resolution": nil}
	} else if id := resolution(field); ok && id != "" {
		body["fields"] = map[string]any{"resolution": map[string]string{"id": id}}
	}
	return j.call(ctx, http.MethodPost, path, body, nil)
}

// choose returns the transition with an id, or the first one to a status of the right category. A transition with a
// screen that requires more than a resolution is the last choice: Jira refuses it and names the fields.
func choose(list []transition, open bool, id string) (transition, error) {
	list = slices.DeleteFunc(list, func(t transition) bool { return t.IsAvailable != nil && !*t.IsAvailable })
	var fitting []transition
	var names []string
	for _, t := range list {
		names = append(names, t.Name+" ("+t.ID+", to "+t.To.Name+")")
		if t.ID == id {
			return t, nil
		}
		if t.To.open() == open {
			fitting = append(fitting, t)
		}
	}
	exist := "; there are: " + enumerate(names)
	if len(names) == 0 {
		exist = "; this account has none"
	}
	if id != "" {
		return transition{}, refused("the transition %q is not possible from the status of the issue%s", oneLine(id, maxTitle), exist)
	}
	if len(fitting) == 0 && open {
		return transition{}, refused("no transition from the status of the issue opens it again%s", exist)
	}
	if len(fitting) == 0 {
		return transition{}, refused("no transition from the status of the issue leads to a status of the category done%s", exist)
	}
	if i := slices.IndexFunc(fitting, transition.simple); i >= 0 {
		return fitting[i], nil
	}
	return fitting[0], nil
}

// simple reports whether nothing but a resolution has to be filled in.
func (t transition) simple() bool {
	for name, field := range t.Fields {
		if name != "resolution" && field.Required && !field.HasDefaultValue {
			return false
		}
	}
	return true
}

// resolution is the id of a value for the field of a transition's screen: one that says that the work was done, or else
// the first one; empty if there is none.
func resolution(field transitionField) string {
	var allowed []struct{ ID, Name string }
	if json.Unmarshal(field.AllowedValues, &allowed) != nil || len(allowed) == 0 {
		return ""
	}
	for _, name := range []string{"Done", "Fixed"} {
		for _, one := range allowed {
			if strings.EqualFold(one.Name, name) {
				return one.ID
			}
		}
	}
	return allowed[0].ID
}
