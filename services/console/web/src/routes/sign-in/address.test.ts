import { expect, test } from "vitest";
import { endedOf, hostOf, loginAddress } from "./address";

test("an issuer is shown by its host", () => {
  expect(hostOf("https://id.acme.example/realms/acme")).toBe("id.acme.example");
  expect(hostOf("no URL")).toBe("no URL");
});

test("the page that asked for the sign-in is where it leads back", () => {
  expect(loginAddress("", "?return=%2Fconsole%2Facme%2Ftriage%3Fq%3Da%26b")).toBe("/auth/login?return=%2Fconsole%2Facme%2Ftriage%3Fq%3Da%26b");
  expect(loginAddress("/tools", "")).toBe("/tools/auth/login");
});

test("only the reasons that the app gives are told", () => {
  expect(endedOf("?return=%2F&ended=decision")).toBe("decision");
  expect(endedOf("?return=%2F&ended=session")).toBe("session");
  expect(endedOf("?return=%2F&ended=Call+this+number")).toBeUndefined();
  expect(endedOf("?return=%2F")).toBeUndefined();
});
