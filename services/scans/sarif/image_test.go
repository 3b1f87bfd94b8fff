package sarif_test

import (
	"fmt"
	"testing"
)

func TestImageCategory(t *testing.T) {
	const layer = `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"web/lib/apk/db"}},
		"logicalLocations":[{"fullyQualifiedName":"%s@sha256:1d8ef5de6b60ed45a7be4fd6ef1a9e6a0fe0ad79ba0e63ac1d3e4ef90f1b6ad8:/lib/apk/db"}]}]}`
	for name, c := range map[string]struct{ run, want string }{
		"Trivy": {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"imageName":"ghcr.io/acme/web:1.4","repoTags":["x:1"]}`,
			"ghcr.io/acme/web"},
		"a tag alone": {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"repoTags":["localhost:5000/web:1.4"]}`,
			"localhost:5000/web"},
		"a digest": {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"repoDigests":["acme/web@sha256:1d8e"]}`, "acme/web"},
		"a type": {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"artifactType":"container_image","artifactName":"web:1@sha256:1d"}`,
			"web"},
		"another type":        {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"artifactType":"repository","imageName":"web"}`, ""},
		"no tag":              {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"image":"registry://localhost:5000/web"}`, "localhost:5000/web"},
		"an archive":          {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"imageName":"out/web.tar"}`, "out/web.tar"},
		"a tag in an archive": {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"imageName":"image.tar","repoTags":["acme/web:1.0"]}`, "acme/web"},
		"a temporary archive": {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"imageName":"/tmp/ci-1/web","repoTags":[],
			"repoDigests":["acme/web@sha256:1d8e"]}`, "acme/web"},
		"a compressed archive": {`"tool":{"driver":{"name":"t"}},"results":[],"properties":{"artifactType":"container_image",
			"artifactName":"C:\\tmp\\web.tar.gz","repoTags":["acme/web:1.0"]}`, "acme/web"},
		"no properties": {`"tool":{"driver":{"name":"Trivy"}},"results":[]`, ""},
		"strange":       {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"imageName":{"a":1}}`, ""},
		"Grype":         {`"tool":{"driver":{"name":"Grype"}},"results":[` + fmt.Sprintf(layer, "acme/web:1.4") + `]`, "acme/web"},
		"Grype's message": {`"results":[{"ruleId":"r","locations":[{}],"message":{"text":"A high vulnerability in deb package: zlib, ` +
			`version 1.2 was found in image acme/web:2 at: /usr/lib"}}],"tool":{"driver":{"name":"Grype"}}`, "acme/web"},
		"a source of Grype": {`"results":[{"ruleId":"r","locations":[{}],"message":{"text":"A high vulnerability in deb package: zlib, ` +
			`version 1.2 was found in image registry:web at: /usr/lib"}}],"tool":{"driver":{"name":"Grype"}}`, "web"},
		"an image named registry": {`"tool":{"driver":{"name":"Trivy"}},"results":[],"properties":{"imageName":"registry:2"}`, "registry"},
		"Snyk": {`"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"web:1.4"}}}]}],
			"tool":{"driver":{"name":"Snyk Container"}}`, "web"},
		"a file of another tool": {`"tool":{"driver":{"name":"Snyk Open Source"}},"results":[{"ruleId":"r","message":{"text":"m"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"web:1.4"}}}]}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, run(c.run)).report.Runs[0].ImageCategory; got != c.want {
				t.Errorf("category is %q, want %q", got, c.want)
			}
		})
	}
}
