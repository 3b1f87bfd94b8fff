package sarif

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// invocation is what is kept of one invocation of the tool.
type invocation struct {
	workingDirectory wireArtifactLocation
	overrides        []wireOverride
	noticeOverrides  []wireOverride

	successful, unsuccessful bool
	// notStarted says that the process of the tool could not be started. signal is the name of the signal that ended it.
	notStarted bool
	signal     string
	exitCode   *integer
	// began and ended are zero if unknown.
	began, ended time.Time
	// failed is what error-level notifications name. undecided are notifications whose level the tool describes
	// elsewhere.
	failed    failures
	undecided []undecided

	execution     notifications
	configuration notifications
}

// notifications counts what the tool reported about itself. These are not results.
type notifications struct{ errors, others int }

// failures are the files and rules that notifications name. unplaced counts notifications that name nothing.
type failures struct {
	files    []wireArtifactLocation
	rules    []wireDescriptorRef
	unplaced int
}

func (f *failures) some() bool { return f.unplaced+len(f.files)+len(f.rules) > 0 }

func (f *failures) add(more failures) {
	f.files, f.rules, f.unplaced = append(f.files, more.files...), append(f.rules, more.rules...), f.unplaced+more.unplaced
}

// undecided is a notification without a level: its descriptor may have one.
type undecided struct {
	descriptor    wireDescriptorRef
	configuration bool
	failures
}

// maxInvocations bounds the invocations of a run that are kept. Nearly all runs have one.
const maxInvocations = 1000

func (r *reader) invocations(run *Run) error {
	return r.list(run, true, func(int) error {
		if len(run.invoked) >= maxInvocations || !r.charge(emptyPart) {
			err := r.Skip()
			run.notes.add(r.here(), "is ignored: the report describes more than fits", true)
			return err
		}
		inv := &invocation{}
		run.invoked = append(run.invoked, inv)
		return r.object(run, true, func(name string) error { return r.invocationMember(run, inv, name) })
	})
}

func (r *reader) invocationMember(run *Run, inv *invocation, name string) error {
	switch name {
	case "executionSuccessful":
		return r.successful(run, inv)
	case "processStartFailureMessage":
		var text string
		err := r.text(run, &text, true)
		inv.notStarted = inv.notStarted || text != ""
		return err
	case "exitSignalName":
		return r.text(run, &inv.signal, true)
	case "exitSignalNumber":
		var number *integer
		err := r.optional(run, &number, always)
		if number != nil && *number > 0 && inv.signal == "" {
			inv.signal = fmt.Sprint("signal ", int(*number))
		}
		return err
	case "exitCode":
		return r.optional(run, &inv.exitCode, always)
	case "startTimeUtc":
		return r.moment(run, &inv.began)
	case "endTimeUtc":
		return r.moment(run, &inv.ended)
	case "workingDirectory":
		return r.optional(run, &inv.workingDirectory, always)
	case "ruleConfigurationOverrides":
		var overrides capped[wireOverride]
		err := r.optional(run, &overrides, never)
		inv.overrides = overrides
		return err
	case "notificationConfigurationOverrides":
		var overrides capped[wireOverride]
		err := r.optional(run, &overrides, always)
		inv.noticeOverrides = overrides
		return err
	case "toolExecutionNotifications":
		return r.notifications(run, inv, false)
	case "toolConfigurationNotifications":
		return r.notifications(run, inv, true)
	}
	return r.Skip()
}

func (r *reader) successful(run *Run, inv *invocation) error {
	var text string
	switch k := r.Kind(); k {
	case 't', 'f':
		inv.successful, inv.unsuccessful = k == 't', k == 'f'
		_, err := r.Token()
		return err
	case '"':
		if err := r.text(run, &text, false); err != nil {
			return err
		}
		b, err := strconv.ParseBool(strings.ToLower(text))
		inv.successful, inv.unsuccessful = err == nil && b, err == nil && !b
		what := "converted"
		if err != nil {
			what = "ignored"
		}
		run.notes.add(r.here(), "is a string, want a boolean: "+what, err != nil)
		return nil
	case 'n':
		return r.Skip()
	}
	return r.ignore(run, "a boolean", true)
}

func (r *reader) notifications(run *Run, inv *invocation, configuration bool) error {
	return r.list(run, true, func(int) error {
		var n wireNotification
		problem, err := r.decode(run, &n, func(pointer string) bool {
			return pointer == "" || pointer == "/level" || pointer == "/descriptor" || pointer == "/associatedRule"
		})
		if err != nil || problem != "" {
			return err
		}
		count := inv.counted(configuration)
		switch {
		case strings.EqualFold(n.Level, "error"):
			count.errors++
			inv.failed.add(r.failures(&n, configuration))
		case n.Level == "" && n.Descriptor != nil:
			one := undecided{*n.Descriptor, configuration, r.failures(&n, configuration)}
			if !r.charge(len(one.descriptor.ID) + len(one.descriptor.GUID) + 256) {
				inv.failed.unplaced++
				return nil
			}
			inv.undecided = append(inv.undecided, one)
		default:
			count.others++
			if n.Message != nil && strings.HasPrefix(n.Message.Text, ignoredFile) {
				inv.failed.add(r.failures(&n, false))
			}
		}
		return nil
	})
}

// ignoredFile is how ESLint begins its warning about a file that it did not look at.
const ignoredFile = "File ignored"

func (inv *invocation) counted(configuration bool) *notifications {
	if configuration {
		return &inv.configuration
	}
	return &inv.execution
}

// failures is what a notification names. One about the configuration only fails its rule: its place is a file of the
// configuration.
func (r *reader) failures(n *wireNotification, configuration bool) (f failures) {
	for _, l := range n.Locations {
		p := l.PhysicalLocation
		if configuration || p == nil || p.ArtifactLocation == nil {
			continue
		}
		if !r.charge(len(p.ArtifactLocation.URI) + len(p.ArtifactLocation.URIBaseID) + 64) {
			return failures{unplaced: 1}
		}
		f.files = append(f.files, *p.ArtifactLocation)
	}
	if ref := n.AssociatedRule; ref != nil {
		if !r.charge(len(ref.ID) + len(ref.GUID) + 128) {
			return failures{unplaced: 1}
		}
		f.rules = append(f.rules, *ref)
	}
	if !configuration && len(f.files)+len(f.rules) == 0 {
		f.unplaced = 1
	}
	return f
}

// decideLevels decides about the notifications without a level. The default is a warning (SARIF 3.58.6).
func (run *Run) decideLevels(inv *invocation) {
	for _, n := range inv.undecided {
		count := inv.counted(n.configuration)
		if !strings.EqualFold(run.noticeLevel(inv, n.descriptor), "error") {
			count.others++
			continue
		}
		count.errors++
		inv.failed.add(n.failures)
	}
	inv.undecided = nil
}

// noticeLevel is the level that the invocation or else the descriptor gives a kind of notification, or empty.
func (run *Run) noticeLevel(inv *invocation, ref wireDescriptorRef) string {
	kind := run.notice(ref)
	for _, o := range inv.noticeOverrides {
		other := run.notice(o.Descriptor)
		same := other.ID != "" && other.ID == kind.ID || other.GUID != "" && strings.EqualFold(other.GUID, kind.GUID)
		if same && o.Configuration != nil && o.Configuration.Level != "" {
			return o.Configuration.Level
		}
	}
	if kind.DefaultConfiguration == nil {
		return ""
	}
	return kind.DefaultConfiguration.Level
}

// notice finds a kind of notification by index, id or GUID. One that no component describes has only these names.
func (run *Run) notice(ref wireDescriptorRef) wireNotice {
	c, i := run.component(ref.ToolComponent), ref.Index
	if c != nil && ref.ID == "" && ref.GUID == "" && i != nil && *i >= 0 && int(*i) < len(c.notices) {
		return c.notices[*i]
	}
	for _, c := range run.components() {
		for _, n := range c.notices {
			if ref.ID != "" && ref.ID == n.ID || ref.GUID != "" && strings.EqualFold(ref.GUID, n.GUID) {
				return n
			}
		}
	}
	return wireNotice{ID: ref.ID, GUID: ref.GUID}
}

// confined reports whether all errors of a successful invocation name a file or a rule, and records these.
func (run *Run) confined(inv *invocation) bool {
	if !inv.successful && !run.onlyUnusedDirectives(inv) || inv.failed.unplaced > 0 {
		return false
	}
	var files, rules []string
	for i := range inv.failed.files {
		file, fault := run.paths.resolve(&inv.failed.files[i])
		if file == "" || fault == pathClimbs || fault == pathTooLong {
			return false
		}
		files = append(files, file)
	}
	for _, ref := range inv.failed.rules {
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
		run.decideLevels(inv)
		if n := inv.execution.errors + inv.execution.others + inv.configuration.errors + inv.configuration.others; n > 0 {
			run.warn("invocations[%d] has notifications of the tool about itself, which are not findings: %d, of them errors: %d", i, n, inv.execution.errors+inv.configuration.errors)
		}
		if why := run.failureOf(inv); why != "" {
			run.Succeeded = false
			run.warn("invocations[%d] %s, so that no finding is closed by this run", i, why)
		}
	}
}

// killed is the first exit code of shells for a program that could not run (126, 127) or was killed (128 and the
// signal).
const killed = 126

// failureOf says why results of an invocation may be missing, or is empty.
func (run *Run) failureOf(inv *invocation) string {
	documented, known := foundCodes(run.Tool.Slug)
	switch {
	case inv.failed.some() && !run.confined(inv):
		return "has notifications about what it could not look at"
	case inv.notStarted:
		return "could not start the tool"
	case inv.signal != "" && !isSuccessSignal(inv.signal):
		return fmt.Sprintf("ended by the signal %q", jsonstream.Cut(inv.signal, 40))
	case known && inv.exitCode != nil && *inv.exitCode != 0 && !documented(int(*inv.exitCode)):
		return fmt.Sprintf("ended with the exit code %d, which says that %s failed", *inv.exitCode, run.Tool.Name)
	case !known && inv.exitCode != nil && *inv.exitCode >= killed:
		return fmt.Sprintf("ended with the exit code %d, which means that it could not run or was killed", *inv.exitCode)
	case !inv.unsuccessful, run.onlyUnusedDirectives(inv):
		return ""
	case known && inv.exitCode != nil && *inv.exitCode != 0:
		return "" // the tool calls it a failure that it found something
	}
	return "says executionSuccessful: false"
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
