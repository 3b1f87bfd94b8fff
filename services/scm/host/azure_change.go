package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// azureCommit is a commit in an answer.
type azureCommit struct{ CommitID string }

// azurePull is a pull request in an answer.
type azurePull struct {
	PullRequestID         int64
	Status                string
	SourceRefName         string
	TargetRefName         string
	LastMergeSourceCommit azureCommit
	LastMergeCommit       azureCommit
}

func (h *azure) pullURL(at azurePlace, number int64) string {
	name := strings.Join([]string{at.organization, at.project, at.repository}, "/")
	return RepositoryURL(scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS, h.web, name) + "/pullrequest/" + strconv.FormatInt(number, 10)
}

func (h *azure) convert(at azurePlace, p *azurePull) (PullRequest, error) {
	if p.PullRequestID == 0 || p.Status == "" || p.SourceRefName == "" || p.TargetRefName == "" {
		return PullRequest{}, malformed("the host's answer is not a pull request of Azure DevOps", nil)
	}
	return PullRequest{
		Number: p.PullRequestID, Open: p.Status == "active", Merged: p.Status == "completed", Head: shortRef(p.SourceRefName), Base: shortRef(p.TargetRefName),
		URL: h.pullURL(at, p.PullRequestID),
	}, nil
}

// PullRequest reads a pull request.
func (h *azure) PullRequest(ctx context.Context, repository string, number int64) (PullRequest, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return PullRequest{}, err
	}
	found := &azurePull{}
	if err := h.call(ctx, http.MethodGet, at.pull(number, ""), nil, nil, found); err != nil {
		return PullRequest{}, err
	}
	pull, err := h.convert(at, found)
	pull.Commit, pull.MergeCommit = found.LastMergeSourceCommit.CommitID, found.LastMergeCommit.CommitID
	return pull, err
}

// azureIteration is a push to a pull request.
type azureIteration struct {
	ID                               int
	SourceRefCommit, CommonRefCommit azureCommit
}

// iterations reads the pushes to a pull request, the oldest first.
func (h *azure) iterations(ctx context.Context, at azurePlace, number int64) ([]*azureIteration, error) {
	list, err := azureItems[azureIteration](ctx, h, at.pull(number, "/iterations"), nil)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.ID == 0 || one.SourceRefCommit.CommitID == "" {
			return nil, malformed("the host's answer is not a list of iterations of Azure DevOps", nil)
		}
	}
	slices.SortFunc(list, func(a, b *azureIteration) int { return a.ID - b.ID })
	return list, nil
}

func (h *azure) newest(ctx context.Context, at azurePlace, number int64) (*azureIteration, error) {
	list, err := h.iterations(ctx, at, number)
	if err == nil && len(list) == 0 {
		err = &Error{Kind: Failed, Text: "Azure DevOps has not compared the branches of the pull request yet: try again later"}
	}
	if err != nil {
		return nil, err
	}
	return list[len(list)-1], nil
}

// azureChange is a changed file in an answer. A deleted file has only its former path.
type azureChange struct {
	ChangeTrackingID int64
	ChangeType       string
	OriginalPath     string
	Item             struct {
		Path     string
		IsFolder bool
	}
}

// paths are the present and the former path of the file, without the slash in front.
func (c *azureChange) paths() []string {
	path, former := strings.TrimPrefix(c.Item.Path, "/"), strings.TrimPrefix(c.OriginalPath, "/")
	if path == "" {
		return []string{former}
	}
	return []string{path, former}
}

// azureChangePage is the maximum number of changes in an answer.
const azureChangePage = 1000

// changes reads the files that an iteration changes, compared with the base.
func (h *azure) changes(ctx context.Context, at azurePlace, number int64, iteration *azureIteration) ([]*azureChange, error) {
	path, skip := at.pull(number, fmt.Sprintf("/iterations/%d/changes", iteration.ID)), 0
	list := paged(func(page int) ([]*azureChange, int, error) {
		var answer struct {
			ChangeEntries []*azureChange
			NextSkip      int
		}
		query := url.Values{"$compareTo": {"0"}, "$top": {strconv.Itoa(azureChangePage)}, "$skip": {strconv.Itoa(skip)}}
		if err := h.call(ctx, http.MethodGet, path, query, nil, &answer); err != nil {
			return nil, 0, err
		}
		if answer.NextSkip <= skip || len(answer.ChangeEntries) == 0 {
			return answer.ChangeEntries, 0, nil
		}
		skip = answer.NextSkip
		return answer.ChangeEntries, page + 1, nil
	})
	var files []*azureChange
	for one, err := range list {
		if err != nil {
			return nil, err
		}
		if one.paths()[0] == "" {
			return nil, malformed("the host's answer is not a list of changed files", nil)
		}
		if one.Item.IsFolder {
			continue
		}
		if files = append(files, one); len(files) > maxChangedFiles {
			return nil, errManyFiles
		}
	}
	return files, nil
}

// ChangedFiles lists the files of the newest iteration, with their former names.
func (h *azure) ChangedFiles(ctx context.Context, repository string, number int64) ([]string, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return nil, err
	}
	newest, err := h.newest(ctx, at, number)
	if err != nil {
		return nil, err
	}
	files, err := h.changes(ctx, at, number, newest)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, one := range files {
		out = append(out, one.paths()...)
	}
	return out, nil
}

// changeOf finds the change of a file; nil if the iteration does not change it.
func (h *azure) changeOf(ctx context.Context, at azurePlace, number int64, iteration *azureIteration, path string) (*azureChange, error) {
	files, err := h.changes(ctx, at, number, iteration)
	if err != nil {
		return nil, err
	}
	for _, one := range files {
		if strings.TrimPrefix(one.Item.Path, "/") == path {
			return one, nil
		}
	}
	return nil, nil
}

// touches reports whether an iteration adds or changes a line of a file. Without the former path, the answer would show
// the whole file as added.
func (h *azure) touches(ctx context.Context, at azurePlace, iteration *azureIteration, change *azureChange, line int64) (bool, error) {
	type params struct {
		Path         string `json:"path"`
		OriginalPath string `json:"originalPath,omitempty"`
	}
	file := params{Path: change.Item.Path, OriginalPath: change.OriginalPath}
	if file.OriginalPath == "" && !strings.Contains(change.ChangeType, "add") {
		file.OriginalPath = file.Path
	}
	body := map[string]any{
		"baseVersionCommit": iteration.CommonRefCommit.CommitID, "targetVersionCommit": iteration.SourceRefCommit.CommitID, "fileDiffParams": []params{file},
	}
	if iteration.CommonRefCommit.CommitID == "" {
		return false, malformed("the host's answer is not an iteration of Azure DevOps", nil)
	}
	type block struct {
		ChangeType              any // a word, or its number
		ModifiedLineNumberStart int64
		ModifiedLinesCount      int64
	}
	var answer azureList[struct{ LineDiffBlocks []*block }]
	query := url.Values{"api-version": {azureVersion + "-preview.1"}}
	err := h.call(ctx, http.MethodPost, at.git("/filediffs"), query, body, &answer)
	if Is(err, NotFound) { // a server without this call, which is a preview: the file is changed, and that has to do
		return true, nil
	}
	if err == nil && (len(answer.Value) != 1 || answer.Value[0] == nil) {
		err = malformed("the host's answer is not a comparison of Azure DevOps", nil)
	}
	if err != nil {
		return false, err
	}
	// A binary file has no blocks.
	for _, one := range answer.Value[0].LineDiffBlocks {
		if one == nil {
			return false, malformed("the host's answer is not a comparison of Azure DevOps", nil)
		}
		unchanged := one.ChangeType == "none" || one.ChangeType == float64(0)
		if !unchanged && one.ModifiedLineNumberStart <= line && line < one.ModifiedLineNumberStart+one.ModifiedLinesCount {
			return true, nil
		}
	}
	return false, nil
}

// safeRef rejects texts that would change the URL of a request.
func safeRef(ref string) bool {
	return ref != "" && len(ref) <= 255 && !strings.ContainsAny(ref, "/?#%\\") && printable(ref) == ref && strings.Trim(ref, ".") != ""
}

// File reads a file. Git tells commits from branches by their form; Azure DevOps wants to be told.
func (h *azure) File(ctx context.Context, repository, path, ref string) ([]byte, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	kinds := []string{"branch", "tag"}
	if len(ref) >= 7 && strings.Trim(ref, "0123456789abcdef") == "" {
		kinds = []string{"commit", "branch", "tag"}
	}
	var content []byte
	for _, kind := range kinds {
		if content, err = h.fileAt(ctx, at, path, kind, shortRef(ref)); !Is(err, NotFound) {
			break
		}
	}
	return content, err
}

func (h *azure) fileAt(ctx context.Context, at azurePlace, path, kind, ref string) ([]byte, error) {
	query := url.Values{
		"path": {"/" + path}, "versionDescriptor.version": {ref}, "versionDescriptor.versionType": {kind},
		"includeContent": {"true"}, "includeContentMetadata": {"true"}, "$format": {"json"},
	}
	var item struct {
		ObjectID, GitObjectType string
		IsFolder                bool
		Content                 *string
		ContentMetadata         *struct{ IsBinary bool }
	}
	if err := h.call(ctx, http.MethodGet, at.git("/items"), query, nil, &item); err != nil {
		return nil, err
	}
	switch {
	case item.ObjectID == "":
		return nil, malformed("the host's answer is not a file of Azure DevOps", nil)
	case item.IsFolder || item.GitObjectType != "" && item.GitObjectType != "blob":
		return nil, tooLargeFile(path)
	case item.ContentMetadata == nil || item.Content == nil && !item.ContentMetadata.IsBinary:
		return nil, malformed("the host's answer is not a file of Azure DevOps", nil)
	case item.ContentMetadata.IsBinary || len(*item.Content) > maxFile || !utf8.ValidString(*item.Content):
		return nil, tooLargeFile(path)
	}
	return []byte(*item.Content), nil
}

// Propose pushes a commit to the branch and opens the pull request, each unless it exists.
func (h *azure) Propose(ctx context.Context, repository string, change Change) (PullRequest, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return PullRequest{}, err
	}
	query := url.Values{
		"searchCriteria.status": {"active"}, "searchCriteria.sourceRefName": {branchRefs + change.Branch}, "searchCriteria.targetRefName": {branchRefs + change.Base},
	}
	open, err := azureItems[azurePull](ctx, h, at.git("/pullrequests"), query)
	if err != nil {
		return PullRequest{}, err
	}
	if err := h.push(ctx, at, change); err != nil {
		return PullRequest{}, err
	}
	for _, one := range open {
		if pull, err := h.convert(at, one); err != nil || pull.Head == change.Branch {
			return pull, err
		}
	}
	made := &azurePull{}
	wanted := map[string]string{
		"sourceRefName": branchRefs + change.Branch, "targetRefName": branchRefs + change.Base, "title": change.Title, "description": clipTo(change.Text, azureDescription),
	}
	if err := h.call(ctx, http.MethodPost, at.git("/pullrequests"), nil, wanted, made); err != nil {
		return PullRequest{}, err
	}
	return h.convert(at, made)
}

// azureDescription is the maximum length of the description of a pull request.
const azureDescription = 4000

func clipTo(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// push adds a commit to the branch. A push to a branch that is not there begins it at the commit that it names.
func (h *azure) push(ctx context.Context, at azurePlace, change Change) error {
	if err := checkPath(change.Path); err != nil {
		return err
	}
	on := change.Branch
	tip, err := h.tip(ctx, at, change.Branch)
	if err == nil && tip == "" {
		on = change.Base
		if tip, err = h.tip(ctx, at, change.Base); err == nil && tip == "" {
			err = &Error{Kind: NotFound, Text: "the repository has no branch " + clip(change.Base)}
		}
	}
	if err != nil {
		return err
	}
	old, err := h.fileAt(ctx, at, change.Path, "branch", on)
	if err != nil {
		return err
	}
	if bytes.Equal(old, change.Content) && on == change.Branch {
		return nil
	}
	body := map[string]any{
		"refUpdates": []map[string]string{{"name": branchRefs + change.Branch, "oldObjectId": tip}},
		"commits": []map[string]any{{"comment": change.Title, "changes": []map[string]any{{
			"changeType": "edit", "item": map[string]string{"path": "/" + change.Path},
			"newContent": map[string]string{"content": base64.StdEncoding.EncodeToString(change.Content), "contentType": "base64encoded"},
		}}}},
	}
	var made struct{ PushID int64 }
	if err := h.call(ctx, http.MethodPost, at.git("/pushes"), nil, body, &made); err != nil {
		return err
	}
	if made.PushID == 0 {
		return malformed("the host's answer is not a push of Azure DevOps", nil)
	}
	return nil
}

// tip is the commit of a branch; empty if there is none. The filter also matches longer names.
func (h *azure) tip(ctx context.Context, at azurePlace, branch string) (string, error) {
	type ref struct{ Name, ObjectID string }
	refs, err := azureItems[ref](ctx, h, at.git("/refs"), url.Values{"filter": {"heads/" + branch}})
	if err != nil {
		return "", err
	}
	for _, one := range refs {
		if one.Name == "" || one.ObjectID == "" {
			return "", malformed("the host's answer is not a list of branches of Azure DevOps", nil)
		}
		if one.Name == branchRefs+branch {
			return one.ObjectID, nil
		}
	}
	return "", nil
}
