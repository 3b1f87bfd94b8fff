import { expect, it } from "vitest";
import { curlOf, type Document, entriesOf, exampleOf, search, typeOf } from "./document";

const document: Document = {
  info: { title: "Palisade", version: "1" },
  tags: [{ name: "Scans" }, { name: "Projects" }],
  paths: {
    "/api/projects/{id}": {
      patch: {
        operationId: "UpdateProject", summary: "Changes a project", tags: ["Projects"], security: [{ token: [] }],
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/projects.v1.Update" } } } },
        responses: { 200: { description: "ok" } },
      },
    },
    "/api/scans": { get: { operationId: "ListScans", tags: ["Scans"], responses: { 200: { description: "ok" } } } },
  },
  components: {
    schemas: {
      "projects.v1.Update": {
        type: "object",
        properties: { id: { type: "string" }, tags: { type: "array", items: { type: "string" } }, parent: { $ref: "#/components/schemas/projects.v1.Update" }, size: { type: "integer", format: "int64" } },
      },
    },
  },
};

const entries = entriesOf(document);

it("has the order of the groups", () => expect(entries.map((entry) => entry.operation.operationId)).toEqual(["ListScans", "UpdateProject"]));

it("finds all words, also names of fields", () => {
  expect(search(entries, "tags patch")).toHaveLength(1);
  expect(search(entries, "PROJECT change")).toHaveLength(1);
  expect(search(entries, "nothing")).toHaveLength(0);
  expect(search(entries, " ")).toHaveLength(2);
});

it("says types in a few words", () => {
  const { properties } = document.components.schemas["projects.v1.Update"] ?? {};
  expect(Object.values(properties ?? {}).map(typeOf)).toEqual(["string", "array of string", "Update", "integer (int64)"]);
});

it("makes examples that end, although schemas refer to themselves", () => {
  expect(exampleOf(document, { $ref: "#/components/schemas/projects.v1.Update" })).toEqual({ id: "", tags: [""], parent: {}, size: 0 });
});

it("leaves out of the body what is in the path", () => {
  const call = curlOf(document, entries[1] as (typeof entries)[0], "https://palisade.acme.test");
  expect(call).toContain("-X PATCH 'https://palisade.acme.test/api/projects/{id}'");
  expect(call).toContain("Authorization: Bearer $PALISADE_TOKEN");
  expect(call).toContain('{"tags":[""],"parent":{},"size":0}');
});
