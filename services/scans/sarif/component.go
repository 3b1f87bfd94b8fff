package sarif

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// component is a tool component (SARIF 3.19): the driver, an extension, or a taxonomy such as CWE.
type component struct {
	name, guid string
	// rules has the rules at their index in the file; nil if a rule could not be read.
	rules   []*Rule
	byID    map[string]*Rule
	titles  map[string]string // of taxa, by id
	strings map[string]string // globalMessageStrings
}

func newComponent() *component {
	return &component{byID: map[string]*Rule{}}
}

// at returns the rule at an index, or nil.
func (c *component) at(index *integer) *Rule {
	if c == nil || index == nil || *index < 0 || int(*index) >= len(c.rules) {
		return nil
	}
	return c.rules[*index]
}

// component resolves a reference (SARIF 3.54). Without a reference it returns the driver; nil means that there is no
// such component.
func (run *Run) component(ref *wireComponentRef) *component {
	if ref == nil {
		return run.driver
	}
	if ref.Index != nil && *ref.Index >= 0 {
		if int(*ref.Index) < len(run.extensions) {
			return run.extensions[*ref.Index]
		}
		return nil
	}
	for _, c := range run.components() {
		if (ref.GUID != "" && strings.EqualFold(c.guid, ref.GUID)) || (ref.GUID == "" && ref.Name != "" && c.name == ref.Name) {
			return c
		}
	}
	if ref.GUID == "" && ref.Name == "" {
		return run.driver
	}
	return nil
}

func (r *reader) tool(run *Run) error {
	if k := r.kind(); k != '{' {
		run.reject("tool is %s, want an object", kindName(k))
		return r.skip()
	}
	return r.object(func(name string) error {
		switch name {
		case "driver":
			if k := r.kind(); k != '{' {
				run.reject("tool.driver is %s, want an object", kindName(k))
				return r.skip()
			}
			return r.component(run, run.driver, &run.Tool)
		case "extensions":
			return r.componentList(run, "tool.extensions", &run.extensions)
		}
		return r.skip()
	})
}

func (r *reader) taxonomyList(run *Run) error {
	return r.componentList(run, "taxonomies", &run.taxonomies)
}

// maxComponents bounds the extensions and the taxonomies that are kept. GitHub accepts 100.
const maxComponents = 1000

// emptyPart is the approximate size of an empty component or invocation in bytes.
const emptyPart = 256

func (r *reader) componentList(run *Run, place string, into *[]*component) error {
	ok, err := r.arrayOf(func(int) error {
		if len(*into) >= maxComponents || !r.charge(emptyPart) {
			run.warn("%s from index %d on are ignored: the report describes more than fits", place, len(*into))
			return r.skip()
		}
		c := newComponent()
		*into = append(*into, c)
		if r.kind() != '{' {
			return r.skip()
		}
		return r.component(run, c, nil)
	})
	if !ok && err == nil {
		run.warn("%s is ignored: it is not an array", place)
	}
	return err
}

// component reads one component. tool is set for the driver, which needs a name.
func (r *reader) component(run *Run, c *component, tool *Tool) error {
	return r.object(func(name string) error {
		switch name {
		case "name":
			if k := r.kind(); k != '"' && tool != nil {
				run.reject("tool.driver.name is %s, want a string", kindName(k))
			}
			err := r.text(&c.name)
			if tool != nil {
				tool.Name = c.name
			}
			return err
		case "guid":
			return r.text(&c.guid)
		case "version":
			return r.toolVersion(tool, true)
		case "semanticVersion", "dottedQuadFileVersion":
			return r.toolVersion(tool, false)
		case "rules":
			return r.ruleList(run, c)
		case "taxa":
			return r.taxa(run, c)
		case "globalMessageStrings":
			var texts dict[wireText]
			err := r.optional(run, name, &texts)
			c.strings = r.messageStrings(run, texts)
			return err
		}
		return r.skip()
	})
}

func (r *reader) toolVersion(tool *Tool, preferred bool) error {
	var version string
	err := r.text(&version)
	if tool != nil && version != "" && (preferred || tool.Version == "") {
		tool.Version = version
	}
	return err
}

// text reads a short string. Anything else leaves it empty.
func (r *reader) text(into *string) error {
	if r.kind() != '"' {
		return r.skip()
	}
	token, err := r.token()
	if err == nil {
		*into = cut(oneLine(clean(token.String())), 255)
	}
	return err
}

func (r *reader) ruleList(run *Run, c *component) error {
	ok, err := r.arrayOf(func(i int) error {
		if run.ruleCount++; run.ruleCount > r.limits.MaxRules {
			run.reject("it has more than %d rules, the most that one run may have", r.limits.MaxRules)
		}
		if run.Rejected != "" {
			return r.skip()
		}
		rule, err := r.rule(run, i)
		if err != nil {
			return err
		}
		c.rules = append(c.rules, rule)
		if rule != nil && c.byID[rule.ID] == nil {
			c.byID[rule.ID] = rule
		}
		return nil
	})
	if !ok && err == nil {
		run.warn("rules is ignored: it is not an array")
	}
	return err
}

// rule reads one rule. It returns nil without an error for an unusable rule; results that name it get a stub.
func (r *reader) rule(run *Run, i int) (*Rule, error) {
	v, ok, err := r.value()
	if err != nil {
		return nil, err
	}
	if !ok {
		run.warn("rules[%d] is ignored: %s", i, overSize(r.limits))
		return nil, nil
	}
	var w wireRule
	if err := json.Unmarshal(v, &w, decodeOptions); err != nil {
		run.warn("rules[%d] is ignored: %s", i, describe(err))
		return nil, nil
	}
	if strings.TrimSpace(w.ID) == "" {
		run.warn("rules[%d] is ignored: it has no id", i)
		return nil, nil
	}
	rule := newRule(&w)
	if !r.charge(rule.size()) {
		rule.Help = ""
		run.warn("help texts from rules[%d] on are left out: the report describes more than fits", i)
		if !r.charge(rule.size()) {
			run.reject("its rules take more than the %d bytes that a report may describe", r.limits.MaxMetadataBytes)
			return nil, nil
		}
	}
	rule.messages = r.messageStrings(run, w.MessageStrings)
	return rule, nil
}

// messageStrings keeps the plain texts of a table of messages.
func (r *reader) messageStrings(run *Run, texts dict[wireText]) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	kept := make(map[string]string, len(texts))
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		t := cut(clean(texts[id].Text), 4096)
		if t == "" {
			continue
		}
		if !r.charge(len(id) + len(t) + 64) {
			run.warn("some message strings are left out: the report describes more than fits")
			break
		}
		kept[id] = strings.Clone(t)
	}
	return kept
}

func (r *reader) taxa(run *Run, c *component) error {
	_, err := r.arrayOf(func(int) error {
		var w wireTaxon
		if _, err := r.decode(&w); err != nil || w.ID == "" {
			return err
		}
		title := w.Name
		if w.ShortDescription != nil && w.ShortDescription.Text != "" {
			title = w.ShortDescription.Text
		}
		title = cut(oneLine(clean(title)), 255)
		if !r.charge(len(w.ID) + len(title) + 64) {
			run.warn("some titles of a taxonomy are left out: the report describes more than fits")
			return nil
		}
		if c.titles == nil {
			c.titles = map[string]string{}
		}
		c.titles[w.ID] = title
		return nil
	})
	return err
}
