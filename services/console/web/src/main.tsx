import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { newQueryClient } from "@/api/query";
import { Keys } from "@/parts/keys";
import { Toasts, useToast } from "@/parts/toast";
import { newRouter } from "@/router";
import "./styles.css";

function App() {
  const toast = useToast();
  const [{ queryClient, router }] = useState(() => {
    const client = newQueryClient((error) => toast({ tone: "bad", text: error.message }));
    return { queryClient: client, router: newRouter(client) };
  });
  return (
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Toasts>
        <Keys>
          <App />
        </Keys>
      </Toasts>
    </StrictMode>,
  );
}
