import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// The server that `make console-dev` talks to. Without a session cookie, PALISADE_TOKEN signs the calls.
const server = process.env.PALISADE_URL ?? "http://127.0.0.1:8080";
const token = process.env.PALISADE_TOKEN;
const proxied = { target: server, headers: token ? { authorization: `Bearer ${token}` } : undefined };

/** The chunk of src/routes/scans/screen.tsx is scans.js, and the one of src/texts/scans.ts is texts-scans.js. */
const chunkName = (modules: string[]): string => {
  const last = modules.at(-1) ?? "";
  return last.match(/\/routes\/([^/]+)\/screen\.tsx$/)?.[1] ?? (/\/src\/texts\/[^/]+\.ts$/.test(last) ? "texts-[name]" : "[name]");
};

// Languages inside other languages (C++ in Ruby, GraphQL in it, scripts in HTML) are larger than all that findings quote.
const embedded = /^\.\/(cpp|cpp-macro|regexp|glsl|graphql|haml|lua|javascript|css)\.mjs$/;
const withoutEmbedded: Plugin = {
  name: "without-embedded-grammars",
  enforce: "pre",
  resolveId: (id, importer) => (importer?.includes("/@shikijs/langs/") && embedded.test(id) ? "\0no-grammar" : undefined),
  load: (id) => (id === "\0no-grammar" ? "export default []" : undefined),
};

export default defineConfig(({ command }) => ({
  // Relative, because a server behind a proxy may have a path of its own. The server completes the paths in index.html.
  base: command === "build" ? "./" : "/console/",
  plugins: [withoutEmbedded, react(), tailwindcss()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2023",
    cssTarget: "chrome123",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    rollupOptions: {
      // Stable names: a new build of the same sources is the same files, and git shows what changed.
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: ({ moduleIds }) => `assets/${chunkName(moduleIds)}.js`,
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": proxied, "/auth": proxied, "/openapi.json": proxied },
  },
}));
