import * as texts from "@/texts";

type Product = keyof typeof texts.words.product;

/** The name of a product as people read it. */
export const productName = (word: string): string => (Object.hasOwn(texts.words.product, word) ? texts.words.product[word as Product] : word);
