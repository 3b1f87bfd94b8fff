package sarif

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// component is a tool component (SARIF 3.19): the driver, an extension, or a taxonomy such as CWE.
type component struct {
	name, guid string
	// rules has the rules at their index in the file; nil if a rule could not be read.
	rules  []*Rule
	byID   map[string]*Rule
	titles map[string]string // of taxa, by id
	// taxonIDs has the ids of taxa at their index in the file.
	taxonIDs []string
	// supported are the taxonomies that the component says it supports.
	supported []wireComponentRef
	strings   map[string]string // globalMessageStrings
	notices   []wireNotice      // kinds of notifications
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
	if k := r.Kind(); k == '"' {
		return r.toolName(run)
	} else if k != '{' {
		run.reject("tool is %s, want an object", jsonstream.KindName(k))
		return r.Skip()
	}
	return r.Object(func(name string) error {
		switch name {
		case "driver":
			return r.driver(run)
		case "extensions":
			return r.componentList(run, true, &run.extensions)
		}
		return r.Skip()
	})
}

func (r *reader) driver(run *Run) error {
	if k := r.Kind(); k == '"' {
		return r.toolName(run)
	} else if k != '{' {
		run.reject("tool.driver is %s, want an object", jsonstream.KindName(k))
		return r.Skip()
	}
	return r.component(run, run.driver, &run.Tool)
}

// toolName reads a tool that is only a name.
func (r *reader) toolName(run *Run) error {
	err := r.text(run, &run.Tool.Name, true)
	run.notes.add(r.here(), "is a string, want an object: read as the name of the tool", true)
	return err
}

func (r *reader) taxonomyList(run *Run) error {
	return r.componentList(run, false, &run.taxonomies)
}

// maxComponents bounds the extensions and the taxonomies that are kept. GitHub accepts 100.
const maxComponents = 1000

// emptyPart is the approximate size of an empty component or invocation in bytes.
const emptyPart = 256

// componentList reads extensions or taxonomies. Only extensions have rules.
func (r *reader) componentList(run *Run, hasRules bool, into *[]*component) error {
	return r.list(run, hasRules, func(int) error {
		if len(*into) >= maxComponents || !r.charge(emptyPart) {
			err := r.Skip()
			run.notes.add(r.here(), "is ignored: the report describes more than fits", hasRules)
			return err
		}
		c := newComponent()
		*into = append(*into, c)
		if r.Kind() != '{' {
			return r.ignore(run, "an object", hasRules)
		}
		return r.component(run, c, nil)
	})
}

// component reads one component. tool is set for the driver, which needs a name.
func (r *reader) component(run *Run, c *component, tool *Tool) error {
	return r.Object(func(name string) error {
		switch name {
		case "name":
			if k := r.Kind(); tool != nil && (k == '{' || k == '[' || k == 'n') {
				run.reject("tool.driver.name is %s, want a string", jsonstream.KindName(k))
			}
			err := r.text(run, &c.name, tool != nil)
			if tool != nil {
				tool.Name = c.name
			}
			return err
		case "guid":
			return r.text(run, &c.guid, false)
		case "version":
			return r.toolVersion(run, tool, true)
		case "semanticVersion", "dottedQuadFileVersion":
			return r.toolVersion(run, tool, false)
		case "rules":
			return r.ruleList(run, c)
		case "taxa":
			return r.taxa(run, c)
		case "notifications":
			var notices capped[wireNotice]
			err := r.optional(run, &notices, always)
			c.notices = append(c.notices, notices...)
			return err
		case "supportedTaxonomies":
			var supported capped[wireComponentRef]
			err := r.optional(run, &supported, never)
			c.supported = supported
			return err
		case "globalMessageStrings":
			var texts dict[wireText]
			err := r.optional(run, &texts, never)
			c.strings = r.messageStrings(run, texts)
			return err
		}
		return r.Skip()
	})
}

func (r *reader) toolVersion(run *Run, tool *Tool, preferred bool) error {
	var version string
	err := r.text(run, &version, false)
	if tool != nil && version != "" && (preferred || tool.Version == "") {
		tool.Version = version
	}
	return err
}

// ruleList reads the rules of a component. Some tools write an object, with the ids as names.
func (r *reader) ruleList(run *Run, c *component) error {
	switch r.Kind() {
	case '[', 'n':
		return r.Array(func(int) error { return r.ruleOf(run, c, "") })
	case '{':
		err := r.Object(func(id string) error { return r.ruleOf(run, c, id) })
		run.notes.add(r.here(), "is an object, want an array: its members are read as rules", true)
		return err
	}
	return r.ignore(run, "an array", true)
}

// ruleOf reads the next rule of a component. id is its id if it has none itself.
func (r *reader) ruleOf(run *Run, c *component, id string) error {
	if run.ruleCount++; run.ruleCount > r.limits.MaxRules {
		run.reject("it has more than %d rules, the most that one run may have", r.limits.MaxRules)
	}
	if run.Rejected != "" {
		return r.Skip()
	}
	rule, err := r.rule(run, id)
	if err != nil {
		return err
	}
	c.rules = append(c.rules, rule)
	if rule != nil && c.byID[rule.ID] == nil {
		c.byID[rule.ID] = rule
	}
	return nil
}

// rule reads one rule. It returns nil without an error for an unusable rule; results that name it get a stub.
func (r *reader) rule(run *Run, id string) (*Rule, error) {
	var w wireRule
	if problem, err := r.decode(run, &w, namesRule); err != nil || problem != "" {
		return nil, err
	}
	if strings.TrimSpace(w.ID) == "" {
		if w.ID = cmp.Or(strings.TrimSpace(id), strings.TrimSpace(w.Name), w.GUID); w.ID == "" {
			run.notes.add(r.here(), "is ignored: it has no id", true)
			return nil, nil
		}
		run.notes.add(r.here(), "has no id: its name is used", true)
	}
	rule := newRule(&w)
	if !r.charge(rule.size()) {
		rule.Help = ""
		run.notes.add(r.here(), "and later rules have no help text: the report describes more than fits", false)
		if !r.charge(rule.size()) {
			run.reject("its rules take more than the %d bytes that a report may describe", r.limits.MaxMetadataBytes)
			return nil, nil
		}
	}
	rule.messages = r.messageStrings(run, w.MessageStrings)
	return rule, nil
}

// namesRule reports whether a part of a rule identifies it.
func namesRule(pointer string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return first == "" || first == "id" || first == "guid" || first == "deprecatedIds"
}

// messageStrings keeps the plain texts of a table of messages.
func (r *reader) messageStrings(run *Run, texts dict[wireText]) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	kept := make(map[string]string, len(texts))
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		t := jsonstream.Cut(jsonstream.Clean(texts[id].Text), 4096)
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

// maxTitle is the length above which a description of a taxon is a sentence, not its title.
const maxTitle = 100

func (r *reader) taxa(run *Run, c *component) error {
	return r.list(run, false, func(int) error {
		var w wireTaxon
		if _, err := r.decode(run, &w, never); err != nil || !r.charge(len(w.ID)+16) {
			return err
		}
		w.ID = redactTokens(w.ID)
		if c.taxonIDs = append(c.taxonIDs, w.ID); w.ID == "" {
			return nil
		}
		title := w.Name
		if short := w.ShortDescription; short != nil && short.Text != "" && (title == "" || len(short.Text) <= maxTitle) {
			title = short.Text
		}
		title = jsonstream.Cut(redactTokens(jsonstream.OneLine(jsonstream.Clean(title))), 255)
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
}
