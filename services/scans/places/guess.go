package places

import (
	"regexp"
	"strings"
)

// knownRoot is the directory in which a CI service checks a repository out by default, or in which the documentation of
// tools mounts it into their container.
type knownRoot struct {
	service string
	pattern *regexp.Regexp
	kind    rootKind
}

type rootKind int

const (
	exact rootKind = iota
	// twice has the name of the repository as its two last parts.
	twice
	// nested may be deeper than the pattern: then it ends with the name of the project.
	nested
	// mount has a name that is common for other directories, too.
	mount
)

// knownRoots has the more specific pattern first.
var knownRoots = []knownRoot{
	{"Azure Pipelines", known(`/(?:home/vsts|Users/(?:runner|vsts))/work/\d+/s`), exact},
	{"Azure Pipelines", known(`/__w/\d+/s`), exact},
	{"Azure Pipelines", known(`[A-Z]:/a/\d+/s`), exact},
	{"Azure Pipelines", known(`(?:[A-Z]:)?(?:/[^/]+)*?/_work/\d+/s`), exact},
	{"GitHub Actions", known(`/github/workspace`), exact},
	{"GitHub Actions", known(`/(?:home|Users)/runner/work/[^/]+/[^/]+`), twice},
	{"GitHub Actions", known(`/__w/[^/]+/[^/]+`), twice},
	{"GitHub Actions", known(`[A-Z]:/a/[^/]+/[^/]+`), twice},
	{"GitHub Actions", known(`(?:[A-Z]:)?(?:/[^/]+)*?/_work/[^/]+/[^/]+`), twice},
	{"GitHub Codespaces", known(`/workspaces/[^/]+`), exact},
	{"GitLab CI", known(`/home/gitlab-runner/builds/[^/]+/\d+/[^/]+/[^/]+`), nested},
	{"GitLab CI", known(`[A-Z]:/(?i:gitlab-runner)/builds/[^/]+/\d+/[^/]+/[^/]+`), nested},
	{"GitLab CI", known(`(?:/Users/gitlab|[A-Z]:/(?i:gitlab-runner))?/builds/[^/]+/[^/]+`), nested},
	{"Jenkins", known(`/(?:var/lib/jenkins|var/jenkins_home|home/jenkins(?:/agent)?|jenkins)/workspace/[^/]+`), nested},
	{"Jenkins", known(`[A-Z]:(?:/[^/]+)*?/(?i:\.?jenkins)(?:/(?i:agent|home))?/workspace/[^/]+`), nested},
	{"Bitbucket Pipelines", known(`/opt/atlassian/pipelines/agent/build`), exact},
	{"Bamboo", known(`(?:[A-Z]:)?(?:/[^/]+)*?/xml-data/build-dir/[^/]+`), exact},
	{"CircleCI", known(`(?:/home/circleci|/root|/Users/distiller|[A-Z]:/Users/circleci)/project`), exact},
	{"Travis CI", known(`(?:/home|/Users|[A-Z]:/Users)/travis/build/[^/]+/[^/]+`), exact},
	{"AppVeyor", known(`(?:[A-Z]:|/(?:home|Users)/appveyor)/projects/[^/]+`), exact},
	{"TeamCity", known(`(?i:/opt|[A-Z]:)(?i:/teamcity)?(?i:/buildagent)/work/[0-9a-f]{12,}`), exact},
	{"AWS CodeBuild", known(`/codebuild/output/src\d+/src/(?:github\.com|gitlab\.com|bitbucket\.org)/[^/]+/[^/]+`), exact},
	{"AWS CodeBuild", known(`/codebuild/output/src\d+/src/git-codecommit\.[^/]+/v1/repos/[^/]+`), exact},
	{"AWS CodeBuild", known(`/codebuild/output/src\d+/src/s3/\d+`), exact},
	{"AWS CodeBuild", known(`(?:[A-Z]:/codebuild/tmp|/codebuild)/output/src\d+/src`), nested},
	{"Buildkite", known(`(?:/var/lib/buildkite-agent|/buildkite|[A-Z]:/buildkite-agent)/builds/[^/]+/[^/]+/[^/]+`), exact},
	{"Drone", known(`/drone/src`), exact},
	{"Woodpecker", known(`/woodpecker/src/[^/]+/[^/]+/[^/]+`), exact},
	{"Semaphore", known(`/home/semaphore/[^/]+`), exact},
	{"Codefresh", known(`/codefresh/volume/[^/]+`), exact},
	{"Bitrise", known(`/bitrise/src`), exact},
	{"Cirrus CI", known(`/tmp/cirrus-ci-build`), exact},
	{"Codemagic", known(`/Users/builder/clone`), exact},
	{"Netlify", known(`/opt/build/repo`), exact},
	{"Concourse", known(`/tmp/build/[0-9a-f]{8}/[^/]+`), exact},
	{"GoCD", known(`(?:/var/lib/go-agent|/go)/pipelines/[^/]+`), exact},
	{"a container", known(`/usr/src/app|/(?:src|work|code|app|workspace|project|repo|source|scan|path|tf|harness)`), mount},
}

func known(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)(?:/|$)`) }

// Guessed is a root that the report does not declare.
type Guessed struct{ Root, Service string }

// Guess looks for a root of well-known services in a sample of decoded paths. It considers only absolute paths that no
// known root contains. More than half of them must have the root of a service in common, and nine of ten a directory
// such as /src, which may be something else. So the paths of one report never have two guessed roots.
func (r *Resolver) Guess(sample []string) (Guessed, bool) {
	votes, most, total := map[Guessed]int{}, Guessed{}, 0
	mounts := map[string]bool{}
	for _, file := range sample {
		decoded := file
		file = Normalise(file)
		if _, inside := r.inside(decoded, file); inside || !IsAbsolute(file) {
			continue
		}
		hosted := strings.HasPrefix(decoded, hostMark)
		if hosted {
			_, file = onHost(file)
		}
		found, kind, ok := r.rootOf(file)
		if hosted && (!ok || kind == mount) {
			continue // probably a relative path
		}
		if total++; !ok {
			continue
		}
		mounts[found.Root] = kind == mount
		if votes[found]++; votes[found] > votes[most] {
			most = found
		}
	}
	n := votes[most]
	if n == 0 || 2*n <= total || mounts[most.Root] && 10*n < 9*total {
		return Guessed{}, false
	}
	r.roots = append(r.roots, most.Root)
	return most, true
}

// rootOf is the well-known root of an absolute path. The path must go on below it.
func (r *Resolver) rootOf(file string) (Guessed, rootKind, bool) {
	for _, k := range knownRoots {
		found := strings.TrimSuffix(k.pattern.FindString(file), "/")
		if found == "" || len(found) == len(file) || k.kind == twice && !sameLastParts(found) {
			continue
		}
		if k.kind == nested {
			found = r.deeper(file, found)
		}
		return Guessed{found, k.service}, k.kind, true
	}
	return Guessed{}, 0, false
}

func sameLastParts(dir string) bool {
	above, last := cutLast(dir)
	_, before := cutLast(above)
	return strings.EqualFold(last, before)
}

func cutLast(s string) (before, last string) {
	slash := strings.LastIndexByte(s, '/')
	return s[:max(slash, 0)], s[slash+1:]
}

// maxNesting is the number of further directories in which the project is looked for.
const maxNesting = 3

// deeper continues a root to the directory with the name of the project, if that is one of the next.
func (r *Resolver) deeper(file, found string) string {
	_, name := cutLast(r.project)
	if _, last := cutLast(found); name == "" || strings.EqualFold(last, name) {
		return found
	}
	end := len(found)
	for range maxNesting {
		part, _, more := strings.Cut(file[end+1:], "/")
		if !more {
			break
		}
		end += 1 + len(part)
		if strings.EqualFold(part, name) {
			return file[:end]
		}
	}
	return found
}
