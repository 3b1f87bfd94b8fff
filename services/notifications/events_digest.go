package notifications

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// maxNamed is the maximum number of findings that the messages to people about one scan name.
const maxNamed = payload.MaxDigests * payload.NamedAtOnce

// tallies has what messages to people need of the new findings of a scan, by the policies of rules. It grows with each
// part of the event, so that a scan with any number of findings gives few messages and needs little memory.
type tallies map[string]*tally

// tally counts findings by severity, and keeps the ids of the first ones of each.
type tally struct {
	Counts map[string]int64   `json:"counts"`
	First  map[string][]int64 `json:"first"`
	// Since is the earliest relevant_since of the findings.
	Since int64 `json:"since"`
}

func parseTallies(event *ent.NotificationEvent) (tallies, error) {
	all := tallies{}
	if len(event.Digest) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(event.Digest, &all); err != nil {
		return nil, fmt.Errorf("digest of notification event %d: %w", event.ID, err)
	}
	return all, nil
}

// keep stores the tallies for the next part of the event.
func (t tallies) keep(update *ent.NotificationEventUpdateOne) *ent.NotificationEventUpdateOne {
	if len(t) == 0 {
		return update
	}
	stored, err := json.Marshal(t)
	if err != nil {
		panic(err) // numbers and texts only
	}
	return update.SetDigest(stored)
}

// add counts a part of the findings for the rules whose receivers are people.
func (t tallies) add(rules []*ent.NotificationRule, part *batch) {
	counted := map[string]bool{}
	for _, rule := range rules {
		key := policiesKey(rule)
		if !rule.SendFindings || !isForPeople(rule) || counted[key] {
			continue
		}
		counted[key] = true
		for _, at := range part.chosen(rule.PolicySlugs) {
			if t[key] == nil {
				t[key] = &tally{Counts: map[string]int64{}, First: map[string][]int64{}}
			}
			t[key].add(part.rows[at])
		}
	}
}

func (t *tally) add(row *ent.Finding) {
	t.Counts[row.Severity]++
	if len(t.First[row.Severity]) < maxNamed {
		t.First[row.Severity] = append(t.First[row.Severity], row.ID)
	}
	if t.Since == 0 || row.RelevantSince < t.Since {
		t.Since = row.RelevantSince
	}
}

// bySeverity lists numbers in the order of severities, without zeros.
func bySeverity(counts map[string]int64) (list []payload.SeverityCount) {
	for _, severity := range payload.Severities {
		if n := counts[severity]; n > 0 {
			list = append(list, payload.SeverityCount{Severity: severity, Count: n})
		}
	}
	return list
}

// worst returns the ids of the worst findings, the worst first.
func (t *tally) worst(most int) (ids []int64) {
	for _, severity := range payload.Severities {
		ids = append(ids, t.First[severity]...)
	}
	return ids[:min(len(ids), most)]
}

// digestDeliveries builds the messages about the findings of a scan for each rule whose receivers are people. Rules
// with the same policies share the bodies. For rules with digests it stores what the next one needs.
func (e *engine) digestDeliveries(
	ctx context.Context, tx *ent.Tx, rules []*ent.NotificationRule, told tallies, about *scanContext,
) (made []*ent.DeliveryCreate, err error) {
	waits, err := e.keepParts(ctx, tx, rules, told, about)
	if err != nil {
		return nil, err
	}
	bodies := map[string][][]byte{}
	for _, rule := range rules {
		key := policiesKey(rule)
		if !rule.SendFindings || !isForPeople(rule) || told[key] == nil || waits[rule.ID] {
			continue
		}
		if _, known := bodies[key]; !known {
			digest, err := e.digest(ctx, tx, told[key], rule.PolicySlugs, about)
			if err != nil {
				return nil, err
			}
			bodies[key] = digest.Bodies()
		}
		for _, m := range bodies[key] {
			made = append(made, newDelivery(tx, rule, about.scan, kindFindings, m))
		}
	}
	return made, nil
}

func (e *engine) digest(
	ctx context.Context, tx *ent.Tx, of *tally, slugs []string, about *scanContext,
) (payload.Digest, error) {
	d := payload.Digest{
		DeploymentID: about.scan.DeploymentID, ProjectID: about.project.ID, ScanID: about.scan.ID,
		Project: about.project.Name, Ref: about.scan.Ref, Counts: bySeverity(of.Counts),
		Link: e.linkTo(about, of.Since, namesPolicy(slugs)), SentAt: time.Now(), TenantName: about.tenant,
	}
	ids := of.worst(payload.ToName(d.Counts))
	rows, err := tx.Finding.Query().
		Where(finding.DeploymentID(about.scan.DeploymentID), store.WithIDs[predicate.Finding](ids)).All(ctx)
	if err != nil {
		return d, err
	}
	slices.SortFunc(rows, func(a, b *ent.Finding) int {
		return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID))
	})
	if err := about.readRules(ctx, tx.Client(), rows); err != nil {
		return d, err
	}
	named, err := about.findings(rows)
	for _, f := range named {
		d.Named = append(d.Named, payload.DigestFinding{
			ID: f.ID, Severity: f.Severity, Rule: f.CheckID, Path: f.Path, Line: f.Line, Message: f.Message,
			Link: findingLink(consoleOf(e.base, about.tenant), f.ID),
		})
	}
	return d, err
}

// findingLink leads to a finding in the console of a deployment.
func findingLink(console string, id int64) string { return fmt.Sprintf("%s/findings/%d", console, id) }

// linkTo leads to the findings of the project and ref in the console that are there since a time, the worst first.
func (e *engine) linkTo(about *scanContext, since int64, allTypes bool) string {
	return listLink(e.base, about.tenant, since, allTypes, url.Values{"project": {parameter(about.project.Name)}, "ref": {parameter(about.scan.Ref)}})
}

// listLink leads to the findings in the console that are there since a time, the worst first.
func listLink(base, slug string, since int64, allTypes bool, query url.Values) string {
	more, err := json.Marshal(map[string]string{"since": store.Time(since).UTC().Format(time.RFC3339Nano)})
	if err != nil {
		panic(err) // a text
	}
	query.Set("sort", "severity")
	query.Set("more", quote(string(more)))
	if !allTypes {
		query.Set("type", strings.Join(codeTypes, ","))
	}
	return consoleOf(base, slug) + "/triage?" + query.Encode()
}

// structured are texts that the console reads as JSON.
var structured = regexp.MustCompile(`^(?:[\[{"]|true$|false$)`)

// parameter is a value of a list in an address of the console.
func parameter(value string) string {
	if value = strings.ReplaceAll(value, ",", `\,`); structured.MatchString(value) {
		return quote(value)
	}
	return value
}

// quote is the text as JSON.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text
	}
	return string(quoted)
}
