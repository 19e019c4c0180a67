# The controller and the command line, and nothing else: Node of a distroless image, and one bundle without packages.
# What goes in is built and started without a container engine by test/integration/image.test.ts.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node scripts/build.ts /ichor

FROM gcr.io/distroless/nodejs24-debian12:nonroot
COPY --from=build /ichor /ichor
USER 65532:65532
ENV NODE_ENV=production
ENTRYPOINT ["/nodejs/bin/node", "/ichor/ichor.cjs"]
