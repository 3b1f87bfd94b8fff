import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import { safeLink } from "@/format";

// Rules, scanners and commenters write Markdown. No raw HTML, no images (a request to another origin), http(s) links only.
const schema: typeof defaultSchema = {
  ...defaultSchema,
  tagNames: defaultSchema.tagNames?.filter((tag) => !["img", "input", "picture", "source"].includes(tag)),
  protocols: { href: ["http", "https"] },
  clobberPrefix: "text-",
};

const components: Components = {
  a: ({ href, children }) => {
    const safe = safeLink(href);
    return safe ? (
      <a href={safe} target="_blank" rel="noopener noreferrer" className="text-accent underline">{children}</a>
    ) : (
      <span>{children}</span>
    );
  },
  h1: ({ children }) => <h3 className="mt-3 mb-1 font-semibold">{children}</h3>,
  h2: ({ children }) => <h3 className="mt-3 mb-1 font-semibold">{children}</h3>,
  h3: ({ children }) => <h4 className="mt-3 mb-1 font-semibold">{children}</h4>,
  p: ({ children }) => <p className="my-2 text-pretty">{children}</p>,
  ul: ({ children }) => <ul className="my-2 list-disc pl-5">{children}</ul>,
  ol: ({ children }) => <ol className="my-2 list-decimal pl-5">{children}</ol>,
  code: ({ children }) => <code className="rounded bg-sunken px-1 font-mono text-[0.92em] wrap-anywhere">{children}</code>,
  pre: ({ children }) => <pre className="my-2 overflow-x-auto rounded-md bg-sunken p-3 text-xs" tabIndex={0}>{children}</pre>,
  table: ({ children }) => <div className="my-2 overflow-x-auto"><table className="text-xs">{children}</table></div>,
  th: ({ children }) => <th className="border border-line px-2 py-1 text-left wrap-normal">{children}</th>,
  td: ({ children }) => <td className="border border-line px-2 py-1">{children}</td>,
};

const longest = 50_000;

/** Markdown of a rule or a message, sanitised. Texts above 50,000 characters are cut. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="wrap-anywhere">
      <ReactMarkdown remarkPlugins={[remarkGfm]} rehypePlugins={[[rehypeSanitize, schema]]} components={components}>
        {text.slice(0, longest)}
      </ReactMarkdown>
    </div>
  );
}
