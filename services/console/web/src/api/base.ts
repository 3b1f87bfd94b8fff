/** Path of the server in front of `/console` and `/api`; "" unless a proxy adds one. The server writes it into index.html. */
export const basePath = (document.querySelector<HTMLMetaElement>('meta[name="palisade-path"]')?.content ?? "").replace(/\/+$/, "");
