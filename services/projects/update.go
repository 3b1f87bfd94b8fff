package projects

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/palisade/palisade/ent"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/gitref"
)

// resetBranch as the primary branch means "use the default branch" (contract facts, UpdateProject).
const resetBranch = "None"

// Fields of the update mask.
const (
	maskPrimaryBranch = "primary_branch"
	maskRepository    = "repository_url"
	maskTags          = "tags"
	maskManagedScan   = "managed_scan_config"
	maskDiffScan      = maskManagedScan + ".diff_scan"
	maskFullScan      = maskManagedScan + ".full_scan"
)

var maskPaths = []string{
	maskPrimaryBranch, maskTags, maskManagedScan, maskDiffScan, maskDiffScan + ".enabled", maskFullScan, maskFullScan + ".enabled", maskRepository,
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
	if changesBranch && strings.ContainsFunc(branch, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return nil, apierr.InvalidArgument("primary_branch", "primary_branch must have no spaces and no control characters, got %q", branch)
	}
	if changesBranch && branch != resetBranch {
		if rule := gitref.Check(gitref.Full(branch)); rule != "" {
			return nil, apierr.InvalidArgument("primary_branch", "a ref %s; got primary_branch %s", rule, apierr.Quote(branch))
		}
	}
	bind := named(mask, maskRepository, r.GetRepositoryUrl() != "")
	if bind {
		if err := checkRepository(r.GetRepositoryUrl()); err != nil {
			return nil, err
		}
	}
	out, err := s.change(ctx, r.GetProjectName(), func(ctx context.Context, tx *ent.Tx, row *ent.Project, update *ent.ProjectUpdateOne) error {
		if changesBranch {
			if branch == resetBranch {
				branch = ""
			}
			update.SetPrimaryBranch(gitref.Full(branch))
		}
		if bind {
			bindRepository(update, r.GetRepositoryUrl())
		}
		if diff := r.GetManagedScanConfig().GetDiffScan(); diff != nil && named(mask, maskDiffScan, true) {
			update.SetManagedDiffScan(diff.GetEnabled())
		}
		if full := r.GetManagedScanConfig().GetFullScan(); full != nil && named(mask, maskFullScan, true) {
			update.SetManagedFullScan(full.GetEnabled())
		}
		if named(mask, maskTags, len(r.GetTags()) > 0) {
			return replaceTags(ctx, tx, row.ID, r.GetTags())
		}
		return nil
	})
	return &projectsv1.UpdateProjectResponse{Project: out}, err
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
