// Asks the server that the page came from.

export const describe = () => fetched("/about");

// What the networks say of a drawing, a byte for each pixel.
export const readDrawing = (body) =>
  fetched("/predict", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body });

async function fetched(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer any more: start it again, and reload");
  }
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}
