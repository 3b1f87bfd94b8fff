package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// External property files (SARIF 3.15, 4.3) have parts of a run. They are read if they are inline, which means in
// inlineExternalProperties of the same report. Other files are never fetched.

// reference is a reference of a run to an external property file with a part that matters for closing findings.
type reference struct{ part, guid, uri string }

// externalParts are the parts of a run without which its results may be misunderstood.
var externalParts = map[string]bool{
	"results": true, "artifacts": true, "invocations": true, "driver": true, "extensions": true, "logicalLocations": true,
}

// referenceList reads externalPropertyFileReferences.
func (r *reader) referenceList(run *Run) error {
	return r.object(run, true, func(part string) error {
		read := func(int) error {
			var w struct {
				GUID     string                `json:"guid"`
				Location *wireArtifactLocation `json:"location"`
			}
			problem, err := r.decode(run, &w, always)
			if err != nil || problem != "" {
				return err
			}
			ref := reference{part: part, guid: w.GUID}
			if w.Location != nil {
				ref.uri = jsonstream.Cut(jsonstream.Clean(w.Location.URI), 200)
			}
			if !r.charge(len(ref.guid) + len(ref.uri) + 64) {
				run.reject("its references to external files take more than fits")
				return nil
			}
			run.references = append(run.references, ref)
			return nil
		}
		if r.Kind() == '[' {
			return r.Array(func(i int) error { return read(i) })
		}
		return read(0)
	})
}

// inlinePart is one element of inlineExternalProperties.
type inlinePart struct {
	*Run           // with the parts of this element only
	own, of string // its GUID and the GUID of its run
	taken   bool
}

// inlineParts reads inlineExternalProperties.
func (r *reader) inlineParts() error {
	_, err := r.ArrayOf(func(int) error {
		part := &inlinePart{Run: newRun(len(r.inline))}
		r.inline = append(r.inline, part)
		if !r.charge(emptyPart) {
			part.reject("inlineExternalProperties has more elements than fit")
			return r.Skip()
		}
		return r.object(part.Run, true, func(name string) error { return r.inlineMember(part, name) })
	})
	return err
}

func (r *reader) inlineMember(part *inlinePart, name string) error {
	switch name {
	case "guid":
		return r.text(part.Run, &part.own, true)
	case "runGuid":
		return r.text(part.Run, &part.of, true)
	case "driver":
		return r.driver(part.Run)
	case "extensions":
		return r.componentList(part.Run, true, &part.extensions)
	case "results", "artifacts", "invocations", "taxonomies", "logicalLocations", "threadFlowLocations":
		return r.runMember(part.Run, name)
	}
	return r.Skip()
}

// joinInline adds the inline parts to their runs: by a reference, by the GUID of the run, or to the only run.
func (r *reader) joinInline() {
	byGUID := map[string]*inlinePart{}
	for _, part := range r.inline {
		if part.own != "" {
			byGUID[strings.ToLower(part.own)] = part
		}
	}
	runs := r.report.Runs
	for _, run := range runs {
		for _, ref := range run.references {
			part := byGUID[strings.ToLower(ref.guid)]
			switch {
			case part != nil:
				part.join(run)
			case externalParts[ref.part]:
				run.Succeeded = false
				run.warn("%s, so that no finding is closed by this run", ref)
			}
		}
	}
	for _, part := range r.inline {
		for _, run := range runs {
			if len(runs) == 1 || part.of != "" && strings.EqualFold(part.of, run.guid) {
				part.join(run)
			}
		}
		if part.taken {
			continue
		}
		for _, run := range runs {
			run.notes.add("inlineExternalProperties", "has parts that no run names: they are not read", true)
		}
	}
}

func (ref reference) String() string {
	name := ref.uri
	if name == "" {
		name = ref.guid
	}
	return "its " + ref.part + " are in the external file " + jsonstream.Cut(jsonstream.Clean(name), 200) + ", which is not read"
}

// join adds the part to a run, once.
func (part *inlinePart) join(run *Run) {
	if part.taken {
		return
	}
	part.taken = true
	run.segments, run.Results = append(run.segments, part.segments...), run.Results+part.Results
	run.hasResults = run.hasResults || part.hasResults
	run.artifacts, run.artifactFacts = append(run.artifacts, part.artifacts...), append(run.artifactFacts, part.artifactFacts...)
	run.artifactsLost = run.artifactsLost || part.artifactsLost
	run.invoked, run.taxonomies = append(run.invoked, part.invoked...), append(run.taxonomies, part.taxonomies...)
	run.extensions, run.sampled = append(run.extensions, part.extensions...), append(run.sampled, part.sampled...)
	run.logical, run.flowTable = append(run.logical, part.logical...), append(run.flowTable, part.flowTable...)
	run.driver.add(part.driver)
	if run.Tool.Name == "" {
		run.Tool = part.Tool
	}
	for _, n := range part.notes.list {
		run.notes.add(n.pointer, n.problem, false)
	}
	if run.notes.blocker == "" {
		run.notes.blocker = part.notes.blocker
	}
	for _, text := range part.Warnings {
		run.warn("%s", text)
	}
	if part.Rejected != "" {
		run.reject("%s", part.Rejected)
	}
}

// add adds the rules and texts of another component.
func (c *component) add(other *component) {
	c.rules, c.notices = append(c.rules, other.rules...), append(c.notices, other.notices...)
	for id, rule := range other.byID {
		if c.byID[id] == nil {
			c.byID[id] = rule
		}
	}
	if c.strings == nil {
		c.strings = other.strings
	}
}
