package lockfiles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/supplychain/lockfiles"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// directory reads a lockfile with the files beside it.
func directory(t testing.TB, files map[string]string, name string) ([]string, error) {
	t.Helper()
	found, err := lockfiles.Read(t.Context(), "web/"+name, []byte(files[name]), func(beside string) []byte {
		if text, known := files[beside]; known {
			return []byte(text)
		}
		return nil
	})
	var list []string
	for _, p := range found {
		if !slices.Contains(osv.Ecosystems, p.Ecosystem) {
			t.Errorf("ecosystem %q of %v", p.Ecosystem, p)
		}
		text := fmt.Sprintf("%s %s@%s %s %d", p.Ecosystem, p.Name, p.Version, p.Transitivity, p.Line)
		if len(p.Children) > 0 {
			text += " > " + strings.Join(p.Children, " ")
		}
		list = append(list, text)
	}
	return list, err
}

// TestRead: each format with direct and transitive packages, and with two versions of one package where it can have them.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"go.mod", map[string]string{"go.mod": "module acme.test/web\n\ngo 1.26.1\n\nrequire (\n\tgolang.org/x/text v0.3.0\n\tgolang.org/x/net v0.1.0 // indirect\n)\n"}, []string{
			"gomod golang.org/x/net@v0.1.0 transitive 7", "gomod golang.org/x/text@v0.3.0 direct 6", "gomod stdlib@1.26.1 direct 3",
		}},
		{"package-lock.json", map[string]string{"package-lock.json": `{
  "name": "web", "lockfileVersion": 3,
  "packages": {
    "": {"name": "web", "workspaces": ["ui"], "dependencies": {"body-parser": "^1.0.0", "short": "npm:@acme/long@1"}},
    "node_modules/body-parser": {
      "version": "1.20.0", "dependencies": {"debug": "2.6.9", "qs": "6.5.0"}},
    "node_modules/body-parser/node_modules/debug": {"version": "2.6.9", "dependencies": {"ms": "2.0.0"}},
    "node_modules/debug": {"version": "4.3.4", "dependencies": {"ms": "2.1.2"}},
    "node_modules/ms": {"version": "2.1.2"},
    "node_modules/qs": {"version": "6.5.0"},
    "node_modules/short": {"name": "@acme/long", "version": "1.0.0"},
    "node_modules/ui": {"resolved": "ui", "link": true},
    "ui": {"version": "0.1.0", "dependencies": {"debug": "^4.0.0"}}
  }
}`}, []string{
			"npm @acme/long@1.0.0 direct 0", "npm body-parser@1.20.0 direct 5 > debug@2.6.9 qs@6.5.0", "npm debug@2.6.9 transitive 0 > ms@2.1.2",
			"npm debug@4.3.4 direct 0 > ms@2.1.2", "npm ms@2.1.2 transitive 0", "npm qs@6.5.0 transitive 0",
		}},
		{"npm-shrinkwrap.json", map[string]string{
			"npm-shrinkwrap.json": `{"lockfileVersion":1,"dependencies":{"debug":{"version":"4.3.4","requires":{"ms":"2.1.2"},"dependencies":{"ms":{"version":"2.1.2"}}},
				"ms":{"version":"2.0.0"},"other":{"version":"npm:@acme/real@3.0.0"},"tar":{"version":"https://packages.acme.test/tar.tgz"}}}`,
			"package.json": `{"dependencies":{"ms":"2"},"devDependencies":{"debug":"*"}}`,
		}, []string{
			"npm @acme/real@3.0.0 transitive 0", "npm debug@4.3.4 direct 0 > ms@2.1.2", "npm ms@2.0.0 direct 0", "npm ms@2.1.2 transitive 0",
		}},
		{"yarn.lock", map[string]string{
			"yarn.lock":    "# yarn lockfile v1\n\n\ndebug@^4.0.0:\n  version \"4.3.4\"\n  dependencies:\n    ms \"2.1.2\"\n\nms@2.1.2:\n  version \"2.1.2\"\n\nms@^2.0.0:\n  version \"2.0.0\"\n",
			"package.json": `{"dependencies":{"debug":"^4.0.0","ms":"^2.0.0"}}`,
		}, []string{"npm debug@4.3.4 direct 4 > ms@2.1.2", "npm ms@2.0.0 direct 12", "npm ms@2.1.2 transitive 9"}},
		{"yarn.lock", map[string]string{
			"yarn.lock":    "__metadata:\n  version: 6\n\n\"debug@npm:^4.0.0\":\n  version: 4.3.4\n  resolution: \"debug@npm:4.3.4\"\n  dependencies:\n    ms: 2.1.2\n  languageName: node\n  linkType: hard\n\n\"ms@npm:2.1.2\":\n  version: 2.1.2\n  resolution: \"ms@npm:2.1.2\"\n  languageName: node\n  linkType: hard\n\n\"web@workspace:.\":\n  version: 0.0.0-use.local\n  resolution: \"web@workspace:.\"\n  languageName: unknown\n  linkType: soft\n",
			"package.json": `{"devDependencies":{"debug":"^4.0.0"}}`,
		}, []string{"npm debug@4.3.4 direct 4 > ms@2.1.2", "npm ms@2.1.2 transitive 12"}},
		{"pnpm-lock.yaml", map[string]string{"pnpm-lock.yaml": "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      debug:\n        specifier: ^4.0.0\n        version: 4.3.4\npackages:\n  debug@4.3.4:\n    resolution: {integrity: sha512-x}\n  ms@2.1.2:\n    resolution: {integrity: sha512-y}\nsnapshots:\n  debug@4.3.4:\n    dependencies:\n      ms: 2.1.2\n  ms@2.1.2: {}\n"}, []string{
			"npm debug@4.3.4 direct 0 > ms@2.1.2", "npm ms@2.1.2 transitive 0",
		}},
		{"requirements-dev.txt", map[string]string{"requirements-dev.txt": "# tools\n-r requirements.txt\nDjango==4.2.0 ; python_version > '3'\nrequests[socks]==2.32.0 \\\n    --hash=sha256:x\nflask>=2\n"}, []string{
			"pypi Django@4.2.0 unknown 3", "pypi requests@2.32.0 unknown 4",
		}},
		{"poetry.lock", map[string]string{
			"poetry.lock":    "[[package]]\nname = \"requests\"\nversion = \"2.32.0\"\n\n[package.dependencies]\nurllib3 = \">=1.21.1,<3\"\n\n[[package]]\nname = \"urllib3\"\nversion = \"2.0.0\"\n\n[metadata]\nlock-version = \"2.0\"\n",
			"pyproject.toml": "[tool.poetry.dependencies]\npython = \"^3.9\"\nRequests = \"^2\"\n",
		}, []string{"pypi requests@2.32.0 direct 0 > urllib3@2.0.0", "pypi urllib3@2.0.0 transitive 0"}},
		{"uv.lock", map[string]string{"uv.lock": "version = 1\n\n[[package]]\nname = \"web\"\nversion = \"0.1.0\"\nsource = { virtual = \".\" }\ndependencies = [{ name = \"requests\" }]\n\n[[package]]\nname = \"requests\"\nversion = \"2.32.0\"\nsource = { registry = \"https://packages.acme.test/simple\" }\ndependencies = [{ name = \"urllib3\" }]\n\n[[package]]\nname = \"urllib3\"\nversion = \"2.0.0\"\nsource = { registry = \"https://packages.acme.test/simple\" }\n"}, []string{
			"pypi requests@2.32.0 direct 0 > urllib3@2.0.0", "pypi urllib3@2.0.0 transitive 0",
		}},
		{"pylock.toml", map[string]string{"pylock.toml": "lock-version = \"1.0\"\n\n[[packages]]\nname = \"requests\"\nversion = \"2.32.0\"\n"}, []string{"pypi requests@2.32.0 unknown 0"}},
		{"Pipfile.lock", map[string]string{
			"Pipfile.lock": `{"default":{"requests":{"version":"==2.32.0"},"urllib3":{"version":"==2.0.0"}},"develop":{"pytest":{"version":"==8.0.0"}}}`,
			"Pipfile":      "[packages]\nRequests = \"*\"\n\n[dev-packages]\npytest = \"*\"\n",
		}, []string{"pypi pytest@8.0.0 direct 0", "pypi requests@2.32.0 direct 0", "pypi urllib3@2.0.0 transitive 0"}},
		{"Cargo.lock", map[string]string{"Cargo.lock": "version = 3\n\n[[package]]\nname = \"libc\"\nversion = \"0.2.1\"\nsource = \"registry+https://packages.acme.test\"\n\n[[package]]\nname = \"rand\"\nversion = \"0.8.0\"\nsource = \"registry+https://packages.acme.test\"\ndependencies = [\n \"libc\",\n]\n\n[[package]]\nname = \"web\"\nversion = \"0.1.0\"\ndependencies = [\n \"rand\",\n]\n"}, []string{
			"cargo libc@0.2.1 transitive 3", "cargo rand@0.8.0 direct 8 > libc@0.2.1",
		}},
		{"pom.xml", map[string]string{"pom.xml": "<project>\n<groupId>test.acme</groupId><version>1.0</version>\n<properties><log.version>2.14.1</log.version><again>${log.version}</again></properties>\n<dependencyManagement><dependencies><dependency><groupId>org.x</groupId><artifactId>managed</artifactId><version>3.1</version></dependency></dependencies></dependencyManagement>\n<dependencies>\n<dependency>\n<groupId>org.apache.logging.log4j</groupId>\n<artifactId>log4j-core</artifactId>\n<version>${again}</version>\n</dependency>\n<dependency><groupId>org.x</groupId><artifactId>managed</artifactId></dependency>\n<dependency><groupId>${project.groupId}</groupId><artifactId>own</artifactId><version>${project.version}</version></dependency>\n<dependency><groupId>org.x</groupId><artifactId>parent</artifactId></dependency>\n<dependency><groupId>org.x</groupId><artifactId>range</artifactId><version>[1.0,2.0)</version></dependency>\n</dependencies>\n</project>\n"}, []string{
			"maven org.apache.logging.log4j:log4j-core@2.14.1 direct 8", "maven org.x:managed@3.1 direct 0", "maven test.acme:own@1.0 direct 0",
		}},
		{"gradle.lockfile", map[string]string{"gradle.lockfile": "# do not edit\norg.slf4j:slf4j-api:1.7.36=compileClasspath\nempty=annotationProcessor\n"}, []string{"maven org.slf4j:slf4j-api@1.7.36 unknown 2"}},
		{"Gemfile.lock", map[string]string{"Gemfile.lock": "GEM\n  remote: https://packages.acme.test/\n  specs:\n    actionpack (7.0.0)\n      rack (~> 2.0)\n    rack (2.2.0)\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  actionpack\n\nBUNDLED WITH\n   2.3.0\n"}, []string{
			"gem actionpack@7.0.0 direct 4 > rack@2.2.0", "gem rack@2.2.0 transitive 6",
		}},
		{"composer.lock", map[string]string{
			"composer.lock": "{\n\"packages\": [\n{\n\"name\": \"monolog/monolog\",\n\"version\": \"v2.0.0\", \"require\": {\"php\": \">=7\", \"psr/log\": \"^1\"}}, {\"name\": \"psr/log\", \"version\": \"1.1.4\"}], \"packages-dev\": []}",
			"composer.json": `{"require":{"monolog/monolog":"^2"}}`,
		}, []string{"composer monolog/monolog@2.0.0 direct 4 > psr/log@1.1.4", "composer psr/log@1.1.4 transitive 0"}},
		{"packages.lock.json", map[string]string{"packages.lock.json": `{"version":1,"dependencies":{"net8.0":{"Serilog":{"type":"Direct","resolved":"3.0.0","dependencies":{"Core":"1.0.0"}},"Core":{"type":"Transitive","resolved":"1.0.0"},"web":{"type":"Project"}}}}`}, []string{
			"nuget Core@1.0.0 transitive 0", "nuget Serilog@3.0.0 direct 0 > Core@1.0.0",
		}},
		{"pubspec.lock", map[string]string{"pubspec.lock": "packages:\n  http:\n    dependency: \"direct main\"\n    description: {name: http}\n    source: hosted\n    version: \"0.13.2\"\n  meta:\n    dependency: transitive\n    description: {name: meta}\n    source: hosted\n    version: \"1.7.0\"\n"}, []string{
			"pub http@0.13.2 direct 0", "pub meta@1.7.0 transitive 0",
		}},
		{"mix.lock", map[string]string{"mix.lock": "%{\n  \"plug\": {:hex, :plug, \"1.10.4\", \"abc\", [:mix], [{:mime, \"~> 1.0\", [hex: :mime, repo: \"hexpm\", optional: false]}], \"hexpm\", \"def\"},\n}\n"}, []string{"hex plug@1.10.4 unknown 2"}},
		{"Podfile.lock", map[string]string{"Podfile.lock": "PODS:\n  - AppCenter (4.2.0):\n    - Core (= 4.2.0)\n  - Core (4.2.0)\n"}, []string{"cocoapods AppCenter@4.2.0 unknown 0 > Core@4.2.0", "cocoapods Core@4.2.0 unknown 0"}},
	} {
		got, err := directory(t, c.files, c.name)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
}

// TestHostile: lockfiles that are none, and ones that try to take much memory or time, are errors or short lists.
func TestHostile(t *testing.T) {
	t.Parallel()
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	nested := strings.Repeat(`{"dependencies":{"a":`, 5000) + `{"version":"1"}` + strings.Repeat(`}}`, 5000)
	properties := "<p0>x</p0>"
	for n := 1; n < 9; n++ {
		properties += fmt.Sprintf("<p%d>%s</p%d>", n, strings.Repeat(fmt.Sprintf("${p%d}", n-1), 80), n)
	}
	for name, content := range map[string]string{
		"pnpm-lock.yaml": "lockfileVersion: '9.0'\npackages: *k\n" + aliases, "package-lock.json": nested, "pom.xml": "<project><properties>" + properties + "</properties><dependencies><dependency><groupId>a</groupId><artifactId>b</artifactId><version>${p8}</version></dependency></dependencies></project>",
		"Podfile.lock": "PODS:\n  - {a (1): [1]}\n", "poetry.lock": "[[package]]\nname = 'a'\nversion = '1'\n[package.dependencies]\na = {version = 1}\n",
		"mix.lock": "a: \n", "uv.lock": "", "go.mod": "require (", "Cargo.lock": "]", "composer.lock": "[]", "packages.lock.json": "1", "Pipfile.lock": "", "yarn.lock": "\x00",
	} {
		if got, err := directory(t, map[string]string{name: content}, name); len(got) > 0 {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	many := "[[package]]\nname = \"a\"\nversion = \"%d\"\n"
	var all strings.Builder
	for n := range 100_001 {
		fmt.Fprintf(&all, many, n)
	}
	if _, err := directory(t, map[string]string{"poetry.lock": all.String()}, "poetry.lock"); err == nil || !strings.Contains(err.Error(), "100000 packages") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	names := []string{
		"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "pylock.toml", "Pipfile.lock", "requirements.txt", "go.mod", "Cargo.lock", "pom.xml",
		"gradle.lockfile", "Gemfile.lock", "composer.lock", "packages.lock.json", "pubspec.lock", "mix.lock", "Podfile.lock",
	}
	for which, text := range []string{
		`{"packages":{"node_modules/a":{"version":"1","dependencies":{"b":"1"}}}}`, "a@^1:\n  version \"1\"\n  dependencies:\n    b \"1\"\n",
		"lockfileVersion: '9.0'\nsnapshots:\n  a@1:\n    dependencies:\n      b: 1\n", "[[package]]\nname = \"a\"\nversion = \"1\"\n",
	} {
		f.Add(uint8(which), []byte(text), []byte(`{"dependencies":{"a":"^1"}}`))
	}
	f.Fuzz(func(t *testing.T, which uint8, content, beside []byte) {
		found, err := lockfiles.Read(t.Context(), names[int(which)%len(names)], content, func(string) []byte { return beside })
		for _, p := range found {
			if err != nil || p.Name == "" || p.Version == "" || p.Ecosystem == "" || p.Transitivity == "" || p.Line < 0 {
				t.Errorf("%v %v", p, err)
			}
		}
	})
}
