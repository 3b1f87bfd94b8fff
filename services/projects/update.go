package projects

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/palisade/palisade/ent"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/gitref"
)

// resetBranch as the primary branch means "use the default branch" (contract facts, UpdateProject).
const resetBranch = "None"

// Fields of the update mask.
const (
	maskPrimaryBranch = "primary_branch"
	maskRepository    = "repository_url"
	maskURL           = "url"
	maskArchived      = "archived"
	maskTags          = "tags"
	maskIgnored       = "ignored_files"
	maskOfProducts    = "product_ignored_files"
	maskManagedScan   = "managed_scan_config"
	maskDiffScan      = maskManagedScan + ".diff_scan"
	maskFullScan      = maskManagedScan + ".full_scan"
)

var maskPaths = []string{
	maskPrimaryBranch, maskTags, maskManagedScan, maskDiffScan, maskDiffScan + ".enabled", maskFullScan, maskFullScan + ".enabled", maskRepository, maskURL,
	maskIgnored, maskOfProducts, maskArchived,
}

// UpdateProject changes the fields in the mask, or all non-empty fields if there is no mask.
func (s *Projects) UpdateProject(ctx context.Context, r *projectsv1.UpdateProjectRequest) (*projectsv1.UpdateProjectResponse, error) {
	mask := r.GetUpdateMask().GetPaths()
	for _, path := range mask {
		if !slices.Contains(maskPaths, path) {
			return nil, apierr.InvalidArgument("update_mask", "update_mask must name only %s, got %q", strings.Join(maskPaths, ", "), path)
		}
	}
	branch := r.GetPrimaryBranch()
	changesBranch := named(mask, maskPrimaryBranch, branch != "") && branch != ""
	if changesBranch {
		if err := checkPrimaryBranch("primary_branch", branch); err != nil {
			return nil, err
		}
	}
	bind := named(mask, maskRepository, r.GetRepositoryUrl() != "")
	if bind {
		if err := checkRepository(r.GetRepositoryUrl()); err != nil {
			return nil, err
		}
	}
	link := codehost.WebURL(r.GetUrl())
	if r.GetUrl() != "" && link == "" {
		return nil, apierr.InvalidArgument("url", "url %s; got %s", codehost.RepositoryRule, apierr.Quote(codehost.Shown(r.GetUrl())))
	}
	if err := checkIgnored(r); err != nil {
		return nil, err
	}
	out, err := s.change(ctx, r.GetProjectName(), func(ctx context.Context, tx *ent.Tx, row *ent.Project, update *ent.ProjectUpdateOne) error {
		if changesBranch {
			update.SetPrimaryBranch(storedBranch(branch))
			if err := warnUnscanned(ctx, tx, &ent.Project{ID: row.ID, PrimaryBranch: storedBranch(branch)}); err != nil {
				return err
			}
		}
		if bind {
			if err := s.bindRepository(ctx, tx, row, update, r.GetRepositoryUrl()); err != nil {
				return err
			}
		}
		if r.Archived != nil && named(mask, maskArchived, true) {
			setArchived(row, update, r.GetArchived())
		}
		if named(mask, maskURL, link != "") {
			if err := setURL(row, update, link); err != nil {
				return err
			}
		}
		if diff := r.GetManagedScanConfig().GetDiffScan(); diff != nil && named(mask, maskDiffScan, true) {
			update.SetManagedDiffScan(diff.GetEnabled())
		}
		if full := r.GetManagedScanConfig().GetFullScan(); full != nil && named(mask, maskFullScan, true) {
			update.SetManagedFullScan(full.GetEnabled())
		}
		if named(mask, maskIgnored, len(r.GetIgnoredFiles()) > 0) {
			update.SetIgnoredFiles(append([]string{}, r.GetIgnoredFiles()...))
		}
		if named(mask, maskOfProducts, r.GetProductIgnoredFiles() != nil) {
			update.SetProductIgnoredFiles(productIgnored(r.GetProductIgnoredFiles()))
		}
		if named(mask, maskIgnored, len(r.GetIgnoredFiles()) > 0) || named(mask, maskOfProducts, r.GetProductIgnoredFiles() != nil) {
			if err := s.jobs.Enqueue(ctx, pathignore.Apply{DeploymentID: row.DeploymentID}, nil); err != nil {
				return err
			}
		}
		if named(mask, maskTags, len(r.GetTags()) > 0) {
			return replaceTags(ctx, tx, []int64{row.ID}, r.GetTags())
		}
		return nil
	})
	return &projectsv1.UpdateProjectResponse{Project: out}, err
}

// setArchived archives a project, or brings it back. A project that was archived without word of who did it was
// archived by its host.
func setArchived(row *ent.Project, update *ent.ProjectUpdateOne, archived bool) {
	if row.HostArchived == nil {
		update.SetHostArchived(row.ArchivedAt != nil)
	}
	switch {
	case !archived:
		update.ClearArchivedAt()
	case row.ArchivedAt == nil:
		update.SetArchivedAt(store.Now())
	}
}

// checkPrimaryBranch rejects what cannot be a primary branch.
func checkPrimaryBranch(field, branch string) error {
	if strings.ContainsFunc(branch, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return apierr.InvalidArgument(field, "%s must have no spaces and no control characters, got %q", field, branch)
	}
	if branch == resetBranch {
		return nil
	}
	if rule := gitref.Check(gitref.Full(branch)); rule != "" {
		return apierr.InvalidArgument(field, "a ref %s; got %s %s", rule, field, apierr.Quote(branch))
	}
	if gitref.IsDetached(branch) {
		return apierr.InvalidArgument(field, "%s must be a branch; %s names a checkout without a branch", field, apierr.Quote(branch))
	}
	return nil
}

// storedBranch is the stored form of a primary branch.
func storedBranch(branch string) string {
	if branch == resetBranch {
		return ""
	}
	return gitref.Full(branch)
}

// named reports whether a mask contains a field, its parent or a child. Without a mask it returns present.
func named(mask []string, field string, present bool) bool {
	if len(mask) == 0 {
		return present
	}
	return slices.ContainsFunc(mask, func(path string) bool {
		return path == field || strings.HasPrefix(field, path+".") || strings.HasPrefix(path, field+".")
	})
}
