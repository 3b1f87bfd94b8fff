package scans

import (
	"fmt"
	"slices"
	"strings"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// statusName is the name of the status that fails if anything blocks.
	statusName = "Palisade"
	// maxPolicyStatuses is how many policies have a status of their own.
	maxPolicyStatuses = 20
	// maxPolicyName is the maximum length of a policy's name in the name of its status, in runes.
	maxPolicyName = 100
)

// wantedStatuses are the statuses of a pull request: one for everything, and one for each policy that may block. stored
// are the ones that the commit has: the status of a policy that is gone passes.
func (f *requestFeedback) wantedStatuses(stored map[string]string) []host.Status {
	whole := f.status(statusName, !f.view.GetBlocked(), f.summary())
	if f.unfinished != nil {
		f.unfinished.change(&whole)
	}
	list := []host.Status{whole}
	if whole.Pending {
		return list // what policies say follows from the findings of the scan
	}
	for _, name := range f.policies[:min(len(f.policies), maxPolicyStatuses)] {
		at := slices.IndexFunc(f.view.GetBlockers(), func(b *scansv1.PullRequestBlocker) bool { return b.GetPolicySlug() != "" && b.GetName() == name })
		if at < 0 {
			list = append(list, f.status(policyStatus(name), true, "blocks nothing"))
			continue
		}
		blocker := f.view.GetBlockers()[at]
		list = append(list, f.status(policyStatus(name), false, strings.Trim("blocks: "+counted(int(blocker.GetFindings()))+", "+blocker.GetReason(), ", ")))
	}
	for name := range stored {
		if !slices.ContainsFunc(list, func(s host.Status) bool { return s.Name == name }) {
			list = append(list, f.status(name, true, "this policy blocks no more"))
		}
	}
	return list
}

func (f *requestFeedback) status(name string, passed bool, text string) host.Status {
	return host.Status{Name: name, Passed: passed, Text: clip(text, host.MaxStatusText), URL: f.page}
}

func policyStatus(name string) string { return statusName + ": " + clip(name, maxPolicyName) }

// summary says in one line what the pull request adds and whether anything blocks it.
func (f *requestFeedback) summary() string {
	added := "no new findings"
	if n := int(f.view.GetAdded()); n > 0 {
		added = strings.Replace(counted(n), " ", " new ", 1)
	}
	if !f.view.GetBlocked() {
		return added
	}
	names := make([]string, len(f.view.GetBlockers()))
	for i, b := range f.view.GetBlockers() {
		names[i] = b.GetName()
	}
	return added + "; blocked by " + strings.Join(names, ", ")
}

// counted is a number of findings in words.
func counted(n int) string {
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}

// clip cuts a text to a number of runes, in one line.
func clip(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
