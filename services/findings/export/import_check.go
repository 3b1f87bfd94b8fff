package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/projects/projectname"
	"github.com/palisade/palisade/services/scans/vex"
)

// Maximum lengths, in characters. They are at least what scans and callers may send.
const (
	maxName     = 255
	maxTag      = 100
	maxRuleName = 1000
	maxPath     = 4096
	maxURL      = 2048
	maxComment  = 10_000
	// maxSkew is how far in the future a time may be: the clocks of servers differ.
	maxSkew = 24 * time.Hour
)

// The words of fields.
var (
	states       = columns.WordsOf("state")
	decisions    = columns.WordsOf("triage_state")
	reasons      = columns.WordsOf("triage_reason")
	severities   = columns.WordsOf("severity")
	policyModes  = columns.WordsOf("policy_mode")
	verdicts     = columns.WordsOf("autotriage_verdict")
	exposures    = columns.WordsOf("exposure")
	ways         = columns.WordsOf("transitivity")
	validities   = columns.WordsOf("validation_state")
	statuses     = []string{lifecycle.Open, lifecycle.Ignored, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored, lifecycle.Fixed, lifecycle.Removed}
	confidences  = []string{vocabulary.ConfidenceLow, vocabulary.ConfidenceMedium, vocabulary.ConfidenceHigh}
	origins      = []string{"custom", "community", "pro_rules"}
	visibilities = []string{"public", "private", "unknown"}
	epssLevels   = []string{"low", "medium", "high", "none"}
	fixStates    = []string{"open", "merged"}
	actorKinds   = []string{"scan", "user", "token", "host", verdict.ActorJob, verdict.ActorWorkflow, vex.Actor, pathignore.Actor, outbox.ActorAutomation, outbox.ActorPolicy, "tracker"}
	scmTypes     = enumNames(scmv1.ScmType_value)
	scanStatuses = enumNames(scansv1.ScanStatus_value)
)

// enumNames are the names of an enum's values, without the unspecified one.
func enumNames(values map[string]int32) []string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Compare(values[a], values[b]) })
	return names[1:]
}

// check refuses records that this server could not have written. Other parts of the server rely on it. What a record
// refers to is checked when it is stored.
func check(record *storev1.ExportRecord) error {
	c := &checks{latest: time.Now().Add(maxSkew)}
	switch of := record.GetRecord().(type) {
	case *storev1.ExportRecord_Project:
		c.project(of.Project)
	case *storev1.ExportRecord_Rule:
		c.rule(of.Rule)
	case *storev1.ExportRecord_Scan:
		c.scan(of.Scan)
	case *storev1.ExportRecord_Finding:
		c.finding(of.Finding)
	}
	return c.err
}

// checks keeps the first error.
type checks struct {
	latest time.Time
	err    error
}

func (c *checks) that(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = invalidf(format, args...)
	}
}

func (c *checks) word(field, got string, words []string) {
	c.that(slices.Contains(words, got), "%s must be one of %s; got %s", field, strings.Join(words, ", "), apierr.Quote(got))
}

func (c *checks) optionalWord(field string, got *string, words []string) {
	if got != nil {
		c.word(field, *got, words)
	}
}

func (c *checks) text(field, got string, least, most int) {
	n := utf8.RuneCountInString(got)
	c.that(n >= least && n <= most, "%s must have %d to %d characters, it has %d", field, least, most, n)
}

func (c *checks) ref(field, got string) {
	broken := gitref.Check(got)
	if broken == "" && !strings.HasPrefix(got, "refs/") {
		broken = "must begin with refs/"
	}
	c.that(broken == "", "%s: a ref %s; got %s", field, broken, apierr.Quote(got))
	c.text(field, got, 1, maxName)
}

func (c *checks) time(field string, at *timestamppb.Timestamp) {
	valid := at.IsValid() && at.AsTime().Unix() >= 0 && !at.AsTime().After(c.latest)
	c.that(valid, "%s must be a time since 1970 that is not in the future; got %s", field, timeOrNone(at))
}

func (c *checks) optionalTime(field string, at *timestamppb.Timestamp) {
	if at != nil {
		c.time(field, at)
	}
}

func timeOrNone(at *timestamppb.Timestamp) string {
	if at == nil {
		return "none"
	}
	return at.AsTime().Format(time.RFC3339)
}

func (c *checks) count(field string, n int32) {
	c.that(n >= 0, "%s must be at least 0; got %d", field, n)
}

func (c *checks) project(r *storev1.ExportedProject) {
	broken := projectname.Check(r.GetName())
	c.that(broken == "", "name: the name of a project %s; got %s", broken, apierr.Quote(r.GetName()))
	c.text("name", r.GetName(), 1, maxName)
	c.text("url", r.GetUrl(), 0, maxURL)
	c.that(r.GetUrl() == "" || codehost.WebURL(r.GetUrl()) != "", "url %s; got %s", codehost.RepositoryRule, apierr.Quote(codehost.Shown(r.GetUrl())))
	if r.GetDefaultBranch() != "" {
		c.ref("defaultBranch", r.GetDefaultBranch())
	}
	if r.GetPrimaryBranch() != "" {
		c.ref("primaryBranch", r.GetPrimaryBranch())
	}
	c.word("visibility", r.GetVisibility(), visibilities)
	c.word("scmType", r.GetScmType(), scmTypes)
	for _, tag := range r.GetTags() {
		c.text("tags: a tag", tag, 1, maxTag)
	}
	c.time("createdAt", r.GetCreatedAt())
	c.optionalTime("latestScanAt", r.GetLatestScanAt())
	c.optionalTime("archivedAt", r.GetArchivedAt())
}

func (c *checks) rule(r *storev1.ExportedRule) {
	c.text("tool", r.GetTool(), 1, maxName)
	c.text("name", r.GetName(), 1, maxRuleName)
	c.text("category", r.GetCategory(), 0, maxName)
	c.that(r.GetContent() != nil, "content is missing")
	c.word("confidence", r.GetConfidence(), confidences)
	c.text("secretType", r.GetSecretType(), 0, maxName)
	c.optionalWord("origin", r.Origin, origins)
}

func (c *checks) scan(r *storev1.ExportedScan) {
	c.that(r.GetNumber() > 0, "number must be greater than 0; got %d", r.GetNumber())
	c.ref("ref", r.GetRef())
	c.text("commit", r.GetCommit(), 0, maxName)
	c.text("uniqueId", r.GetUniqueId(), 0, maxName)
	c.text("resultsState", r.GetResultsState(), 0, maxName)
	c.word("status", r.GetStatus(), scanStatuses)
	c.count("products", r.GetProducts())
	c.count("totalCount", r.GetTotalCount())
	c.count("codeCount", r.GetCodeCount())
	c.count("supplyChainCount", r.GetSupplyChainCount())
	c.count("secretsCount", r.GetSecretsCount())
	c.that(r.GetCommitTime() == nil || r.GetCommitTime().IsValid(), "commitTime must be a time")
	c.time("startedAt", r.GetStartedAt())
	c.optionalTime("completedAt", r.GetCompletedAt())
}

func (c *checks) finding(r *storev1.ExportedFinding) {
	c.text("tool", r.GetTool(), 1, maxName)
	c.text("analysisCategory", r.GetAnalysisCategory(), 0, maxName)
	c.text("fingerprint", r.GetFingerprint(), 1, 2*maxName)
	c.ref("ref", r.GetRef())
	c.facts(r)
	c.text("triageComment", r.GetTriageComment(), 0, maxComment)
	c.text("componentTag", r.GetComponentTag(), 0, maxName)
	c.text("package", r.GetPackage(), 0, maxRuleName)
	c.text("advisory", r.GetAdvisory(), 0, maxName)
	c.text("filePath", r.GetFilePath(), 0, maxPath)
	c.time("createdAt", r.GetCreatedAt())
	c.time("relevantSince", r.GetRelevantSince())
	c.time("stateUpdatedAt", r.GetStateUpdatedAt())
	c.optionalTime("triagedAt", r.GetTriagedAt())
	c.that(r.GetContent() != nil, "content is missing")
	at := r.GetContent().GetLocation()
	c.count("content.location.line", at.GetLine())
	c.count("content.location.column", at.GetColumn())
	c.count("content.location.end_line", at.GetEndLine())
	c.count("content.location.end_column", at.GetEndColumn())
	itself := &storev1.ExportedIdentity{Ref: r.GetRef(), AnalysisCategory: r.GetAnalysisCategory(), Fingerprint: r.GetFingerprint()}
	c.that(!proto.Equal(r.GetMergedInto(), itself), "mergedInto names the finding itself")
	for n, e := range r.GetEvents() {
		c.event(fmt.Sprintf("events[%d].", n), e)
	}
	for n, m := range r.GetMatches() {
		c.that(m.GetContent() != nil, "matches[%d].content is missing", n)
		c.text(fmt.Sprintf("matches[%d].rung", n), m.GetRung(), 0, maxName)
		c.time(fmt.Sprintf("matches[%d].at", n), m.GetAt())
	}
	c.requests(r.GetExceptionRequests())
}

// facts checks the columns that have few words.
func (c *checks) facts(r *storev1.ExportedFinding) {
	c.word("issueType", r.GetIssueType(), vocabulary.Products)
	c.word("severity", r.GetSeverity(), severities)
	c.word("state", r.GetState(), states)
	c.word("triageState", r.GetTriageState(), decisions)
	c.optionalWord("triageReason", r.TriageReason, reasons)
	c.optionalWord("policyMode", r.PolicyMode, policyModes)
	c.optionalWord("autotriageVerdict", r.AutotriageVerdict, verdicts)
	c.optionalWord("exposure", r.Exposure, exposures)
	c.optionalWord("transitivity", r.Transitivity, ways)
	c.optionalWord("validationState", r.ValidationState, validities)
	c.optionalWord("epssProbability", r.EpssProbability, epssLevels)
	c.optionalWord("clickToFixState", r.ClickToFixState, fixStates)
	status := lifecycle.Status(r.GetState(), r.GetTriageState())
	c.that(r.GetStatus() == status, "status must be %s, as state and triageState say; got %s", status, apierr.Quote(r.GetStatus()))
}

func (c *checks) event(prefix string, e *storev1.ExportedEvent) {
	c.word(prefix+"kind", e.GetKind(), issue.EventKinds())
	c.word(prefix+"actorKind", e.GetActorKind(), actorKinds)
	if e.GetFromStatus() != "" {
		c.word(prefix+"fromStatus", e.GetFromStatus(), statuses)
	}
	c.word(prefix+"toStatus", e.GetToStatus(), statuses)
	c.text(prefix+"reason", e.GetReason(), 0, maxComment)
	c.text(prefix+"note", e.GetNote(), 0, maxComment)
	c.text(prefix+"actor", e.GetActor(), 0, maxName)
	c.time(prefix+"at", e.GetAt())
}
