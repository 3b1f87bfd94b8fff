package sarif

import "strings"

// invocation is what is kept of one invocation of the tool.
type invocation struct {
	workingDirectory wireArtifactLocation
	overrides        []wireOverride

	successful, unsuccessful bool
	// failedFiles and failedRules are named by error-level notifications about the execution. unplaced counts
	// notifications that name nothing.
	failedFiles []wireArtifactLocation
	failedRules []wireDescriptorRef
	unplaced    int

	execution      notifications
	configuration  notifications
	abnormalEnding bool
}

// notifications counts what the tool reported about itself. These are not results.
type notifications struct{ errors, others int }

// maxInvocations bounds the invocations of a run that are kept. Nearly all runs have one.
const maxInvocations = 1000

func (r *reader) invocations(run *Run) error {
	ok, err := r.arrayOf(func(i int) error {
		if len(run.invoked) >= maxInvocations || !r.charge(emptyPart) {
			run.warn("invocations from index %d on are ignored: the report describes more than fits", len(run.invoked))
			return r.skip()
		}
		inv := &invocation{}
		run.invoked = append(run.invoked, inv)
		ok, err := r.objectOf(func(name string) error { return r.invocationMember(run, inv, name) })
		if !ok && err == nil {
			run.warn("invocations[%d] is ignored: it is not an object", i)
		}
		return err
	})
	if !ok && err == nil {
		run.warn("invocations is ignored: it is not an array")
	}
	return err
}

func (r *reader) invocationMember(run *Run, inv *invocation, name string) error {
	switch name {
	case "executionSuccessful":
		var successful *bool
		err := r.optional(run, "invocations."+name, &successful)
		inv.successful = successful != nil && *successful
		inv.unsuccessful = successful != nil && !*successful
		return err
	case "processStartFailureMessage", "exitSignalName":
		var text string
		err := r.optional(run, "invocations."+name, &text)
		inv.abnormalEnding = inv.abnormalEnding || text != ""
		return err
	case "workingDirectory":
		return r.optional(run, "invocations."+name, &inv.workingDirectory)
	case "ruleConfigurationOverrides":
		var overrides capped[wireOverride]
		err := r.optional(run, "invocations."+name, &overrides)
		inv.overrides = overrides
		return err
	case "toolExecutionNotifications":
		return r.notifications(&inv.execution, func(n *wireNotification) { r.failure(inv, n) })
	case "toolConfigurationNotifications":
		return r.notifications(&inv.configuration, nil)
	}
	return r.skip()
}

func (r *reader) notifications(count *notifications, failure func(*wireNotification)) error {
	_, err := r.arrayOf(func(int) error {
		var n wireNotification
		if _, err := r.decode(&n); err != nil {
			return err
		}
		if !strings.EqualFold(n.Level, "error") {
			count.others++
			return nil
		}
		count.errors++
		if failure != nil {
			failure(&n)
		}
		return nil
	})
	return err
}

// failure records what an error-level notification names.
func (r *reader) failure(inv *invocation, n *wireNotification) {
	placed := false
	for _, l := range n.Locations {
		p := l.PhysicalLocation
		if p == nil || p.ArtifactLocation == nil {
			continue
		}
		if !r.charge(len(p.ArtifactLocation.URI) + len(p.ArtifactLocation.URIBaseID) + 64) {
			placed = false
			break
		}
		placed, inv.failedFiles = true, append(inv.failedFiles, *p.ArtifactLocation)
	}
	if ref := n.AssociatedRule; ref != nil && r.charge(len(ref.ID)+len(ref.GUID)+128) {
		placed, inv.failedRules = true, append(inv.failedRules, *ref)
	}
	if !placed {
		inv.unplaced++
	}
}

// confined reports whether all errors of a successful invocation name a file or a rule, and records these.
func (run *Run) confined(inv *invocation) bool {
	if !inv.successful || inv.unplaced > 0 {
		return false
	}
	var files, rules []string
	for i := range inv.failedFiles {
		file, err := run.paths.resolve(&inv.failedFiles[i])
		if err != nil || file == "" {
			return false
		}
		files = append(files, file)
	}
	for _, ref := range inv.failedRules {
		id := ruleID(ref.ID)
		if rule := run.component(ref.ToolComponent).at(ref.Index); id == "" && rule != nil {
			id = rule.ID
		}
		if id == "" {
			return false
		}
		rules = append(rules, id)
	}
	run.failedFiles, run.failedRules = append(run.failedFiles, files...), append(run.failedRules, rules...)
	return true
}

// checkComplete decides whether the run is complete. An incomplete run may add findings, but closes none.
func (run *Run) checkComplete() {
	for i, inv := range run.invoked {
		if n := inv.execution.errors + inv.execution.others + inv.configuration.errors + inv.configuration.others; n > 0 {
			run.warn("invocations[%d] has %d notifications of the tool about itself, %d of them errors; they are not findings", i, n, inv.execution.errors+inv.configuration.errors)
		}
		why := ""
		switch {
		case inv.execution.errors > 0 && !run.confined(inv):
			why = "has error-level notifications about its execution"
		case inv.abnormalEnding:
			why = "ended abnormally"
		case inv.unsuccessful && !run.onlyUnusedDirectives(inv):
			why = "says executionSuccessful: false"
		default:
			continue
		}
		run.Succeeded = false
		run.warn("invocations[%d] %s, so that no finding is closed by this run", i, why)
	}
}

// onlyUnusedDirectives handles ESLint's formatter. It writes executionSuccessful: false even for a warning about an
// unused disable comment in a complete run. If ESLint could not parse a file, the notification has level error.
func (run *Run) onlyUnusedDirectives(inv *invocation) bool {
	return strings.EqualFold(run.Tool.Name, "eslint") && inv.configuration.others > 0 && inv.configuration.errors == 0
}

// overrideFor returns the severity that the invocation of a result configured for its rule, or "". A result that names
// no invocation belongs to the first.
func (run *Run) overrideFor(w *wireResult, rule *Rule) string {
	index := 0
	if w.Provenance != nil && w.Provenance.InvocationIndex != nil && *w.Provenance.InvocationIndex >= 0 {
		index = int(*w.Provenance.InvocationIndex)
	}
	if index >= len(run.invoked) {
		return ""
	}
	for _, o := range run.invoked[index].overrides {
		if o.Configuration == nil || !run.refersTo(o.Descriptor, rule) {
			continue
		}
		if s := fromLevel(o.Configuration.Level); s != "" {
			return s
		}
	}
	return ""
}

// refersTo reports whether a reference means the rule: by id, else by GUID, else by index.
func (run *Run) refersTo(ref wireDescriptorRef, rule *Rule) bool {
	switch {
	case ref.ID != "":
		return ref.ID == rule.ID
	case ref.GUID != "":
		return strings.EqualFold(ref.GUID, rule.guid)
	case ref.Index != nil:
		return run.component(ref.ToolComponent).at(ref.Index) == rule
	}
	return false
}
