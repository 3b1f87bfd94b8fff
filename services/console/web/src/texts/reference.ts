import { counted } from "./plural";

export const reference = {
  title: "API",
  intro: "The console uses only this API. Everything that it shows and does, your programs can read and do, too.",
  search: "Search operations, paths and fields",
  operations: (n: string) => counted(n, "operation"),
  none: "No operation matches",
  noneHint: "Search for a word of the path, of the name, or of the description.",
  choose: "Choose an operation",
  document: "openapi.json",
  parameters: "Parameters",
  body: "Request body",
  responses: "Responses",
  required: "required",
  example: "Example",
  name: "Name",
  in: "In",
  description: "Description",
  more: "Show the fields",
  noBody: "No content",
  back: "All operations",
};
