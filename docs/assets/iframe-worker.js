/* Search on pages that are opened from a disk, where browsers start no workers: the worker's script
   runs in a hidden frame. Material's offline plugin takes a file of this name in place of one from
   another server. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const scope = frame.contentWindow;
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      this.scope = new Promise((resolve) => (script.onload = () => resolve(scope)));
      script.src = url;
      frame.contentDocument.head.append(script);
    }

    async postMessage(data) {
      (await this.scope).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
